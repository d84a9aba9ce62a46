// Package replica keeps a row for every process of the fleet: who runs, since when, and when it was last heard of. A process beats once a
// second and takes its row along when it stops; the row of one that crashed stays, and says how old it is.
//
// Times are the database's (market_now()).
package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

const (
	// Every is how often a process beats.
	Every = time.Second
	// AliveFor is how old a heartbeat may be of a process that counts as running.
	AliveFor = 3 * Every
	// keptFor is how long the row of one that crashed is kept for a look.
	keptFor = 24 * time.Hour
)

// A Replica is one process.
type Replica struct {
	ID        uuid.UUID
	Address   string // of its public listener
	StartedAt time.Time
	Beat      time.Time
}

// Store keeps the rows.
type Store struct{}

const beatSQL = `
INSERT INTO replicas (id, address, started_at, heartbeat_at) VALUES ($1, $2, market_now(), market_now())
ON CONFLICT (id) DO UPDATE SET heartbeat_at = market_now()`

// Beat says that a process runs.
func (Store) Beat(ctx context.Context, db postgres.DB, id uuid.UUID, address string) error {
	if _, err := db.Exec(ctx, beatSQL, id, address); err != nil {
		return fmt.Errorf("beat of replica %s: %w", id, err)
	}
	return nil
}

const leaveSQL = `DELETE FROM replicas WHERE id = $1 OR heartbeat_at < market_now() - $2::interval`

// Leave takes a process's row away, and with it those of processes that crashed long ago.
func (Store) Leave(ctx context.Context, db postgres.DB, id uuid.UUID) error {
	if _, err := db.Exec(ctx, leaveSQL, id, keptFor); err != nil {
		return fmt.Errorf("leave of replica %s: %w", id, err)
	}
	return nil
}

const aliveSQL = `
SELECT id, address, started_at, heartbeat_at FROM replicas WHERE heartbeat_at > market_now() - $1::interval ORDER BY started_at, id LIMIT 1000`

// Alive returns the processes that run.
func (Store) Alive(ctx context.Context, db postgres.DB) ([]Replica, error) {
	rows, err := db.Query(ctx, aliveSQL, AliveFor)
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	alive, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Replica])
	if err != nil {
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	return alive, nil
}
