package refund

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Deferred is how many refunds wait for one source, and how long ago the first of them was owed.
type Deferred struct {
	Source string
	N      int
	Oldest time.Duration
}

// There are as many rows as sources. The index of what is due has the open refunds alone.
const deferredSQL = `
SELECT waits_for, count(*)::int, market_now() - min(owed_at)
  FROM refunds WHERE waits_for <> '' AND state NOT IN ('confirmed', 'void') GROUP BY waits_for`

// Deferred counts the refunds that wait for each source.
func (Store) Deferred(ctx context.Context, db postgres.DB) ([]Deferred, error) {
	rows, err := db.Query(ctx, deferredSQL)
	if err != nil {
		return nil, fmt.Errorf("count deferred refunds: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Deferred])
	if err != nil {
		return nil, fmt.Errorf("count deferred refunds: %w", err)
	}
	return all, nil
}
