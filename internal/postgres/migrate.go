package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"market/migrations"
)

// migrateLock is the advisory lock of whoever migrates a database. Any fixed number would do.
const migrateLock int64 = 0x6d61726b6574 // "market"

// lockPoll is how often a waiting replica asks for the lock. It polls, because a statement that waits inside the server holds a
// snapshot, and CREATE INDEX CONCURRENTLY of the replica at work would wait for that snapshot.
const lockPoll = 100 * time.Millisecond

// Migrate brings the database at a URL to the newest schema: our own files with goose, then the job queue's. Replicas may run it at the
// same time: one works, the others wait and then find nothing to do.
func Migrate(ctx context.Context, databaseURL string) error {
	pool, err := Open(ctx, databaseURL, func(c *pgxpool.Config) {
		c.MaxConns = 4
		// A migration takes as long as it takes; what it waits for is still bounded by the caller's context.
		for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
			c.ConnConfig.RuntimeParams[name] = "0"
		}
	})
	if err != nil {
		return err
	}
	defer pool.Close()
	return withMigrateLock(ctx, pool, func() error {
		if err := migrateOurs(ctx, pool); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		if err := migrateJobs(ctx, pool); err != nil {
			return fmt.Errorf("migrate job queue: %w", err)
		}
		return nil
	})
}

const (
	tryLockSQL = `SELECT pg_try_advisory_lock($1)`
	unlockSQL  = `SELECT pg_advisory_unlock($1)`
)

// withMigrateLock holds the lock on a connection of its own for as long as work runs.
func withMigrateLock(ctx context.Context, pool *pgxpool.Pool, work func() error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrate lock: %w", err)
	}
	defer conn.Release()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		var held bool
		if err := conn.QueryRow(ctx, tryLockSQL, migrateLock).Scan(&held); err != nil {
			return fmt.Errorf("migrate lock: %w", err)
		}
		if held {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("migrate lock: %w", ctx.Err())
		case <-tick.C:
		}
	}
	if err := work(); err != nil {
		return err // the pool is closed next, and the lock goes with its connection
	}
	if _, err := conn.Exec(ctx, unlockSQL, migrateLock); err != nil {
		return fmt.Errorf("migrate unlock: %w", err)
	}
	return nil
}

func migrateOurs(ctx context.Context, pool *pgxpool.Pool) error {
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // closes no connection: they are the pool's
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

func migrateJobs(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
