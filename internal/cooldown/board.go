package cooldown

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// Board holds the running cooldowns in memory, so that an unpaid request costs no query. It may be late by a notification; nobody is
// charged by it.
type Board struct {
	now   func() time.Time
	state atomic.Pointer[board]
}

type board struct {
	skew  time.Duration // market time minus ours
	until map[uuid.UUID]time.Time
}

// NewBoard returns an empty board that reads this process's clock.
func NewBoard(now func() time.Time) *Board {
	b := &Board{now: now}
	b.state.Store(&board{})
	return b
}

// market_now() stands in every row, and in one row without a service where nothing cools down.
const runningSQL = `
SELECT c.service_id, c.until, n.at
  FROM (SELECT market_now() AS at) n LEFT JOIN cooldowns c ON c.until > n.at
 LIMIT 100000`

// Load reads the running cooldowns.
func (b *Board) Load(ctx context.Context, db postgres.DB) error {
	rows, err := db.Query(ctx, runningSQL)
	if err != nil {
		return fmt.Errorf("load cooldowns: %w", err)
	}
	next := &board{until: map[uuid.UUID]time.Time{}}
	var (
		service *uuid.UUID
		until   *time.Time
		market  time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&service, &until, &market}, func() error {
		if service != nil && until != nil {
			next.until[*service] = *until
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("load cooldowns: %w", err)
	}
	next.skew = market.Sub(b.now())
	b.state.Store(next)
	return nil
}

// Remaining returns how long a service still rests; zero when it does not.
func (b *Board) Remaining(service uuid.UUID) time.Duration {
	state := b.state.Load()
	until, resting := state.until[service]
	if !resting {
		return 0
	}
	return max(0, until.Sub(b.now().Add(state.skew)))
}
