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
	Beat      time.Time // when it last read who runs
	Terms     Terms
}

// Terms are what a process may lose and how fast it may send payments to settlement, in micro-dollars; zero: it was told none.
type Terms struct {
	Budget, Rate, Burst int64
	Share               int // in 1/10000
}

// Store keeps the rows.
type Store struct{}

// A heartbeat never goes back: one that was late says less than the one that overtook it.
const beatSQL = `
INSERT INTO replicas (id, address, started_at, heartbeat_at, rate, burst, share, budget)
VALUES ($1, $2, market_now(), coalesce($3, market_now()), $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET heartbeat_at = greatest(replicas.heartbeat_at, excluded.heartbeat_at)`

// Beat says that a process runs, which has read at a time, and taken in, who else does. A zero time is now: of one that has not read anything yet.
func (Store) Beat(ctx context.Context, db postgres.DB, id uuid.UUID, address string, terms Terms, read time.Time) error {
	var at *time.Time
	if !read.IsZero() {
		at = &read
	}
	var rate, burst, budget, share *int64
	if terms != (Terms{}) {
		part := int64(terms.Share)
		rate, burst, budget, share = &terms.Rate, &terms.Burst, &terms.Budget, &part
	}
	if _, err := db.Exec(ctx, beatSQL, id, address, at, rate, burst, share, budget); err != nil {
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
SELECT id, address, started_at, heartbeat_at, coalesce(budget, 0), coalesce(rate, 0), coalesce(burst, 0), coalesce(share, 0), read.at
  FROM (SELECT market_now() AS at) AS read LEFT JOIN replicas ON heartbeat_at > read.at - $1::interval
 ORDER BY started_at, id LIMIT 1000`

// Alive returns the processes that run, and when that was read, in market time.
func (Store) Alive(ctx context.Context, db postgres.DB) (alive []Replica, at time.Time, err error) {
	rows, err := db.Query(ctx, aliveSQL, AliveFor)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list replicas: %w", err)
	}
	// There is one row where nobody runs, which has no process.
	var (
		id            *uuid.UUID
		address       *string
		started, beat *time.Time
		terms         Terms
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &address, &started, &beat, &terms.Budget, &terms.Rate, &terms.Burst, &terms.Share, &at}, func() error {
		if id != nil {
			alive = append(alive, Replica{ID: *id, Address: *address, StartedAt: *started, Beat: *beat, Terms: terms})
		}
		return nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("list replicas: %w", err)
	}
	return alive, at, nil
}
