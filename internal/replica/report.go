package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// reportMax is the size of a report that is taken; ours have a few entries.
const reportMax = 64 << 10

// A Report is what a process that runs says of itself, in its own form.
type Report struct {
	ID      uuid.UUID
	Address string
	Text    []byte    // JSON
	At      time.Time // when it was written, in market time
}

// The time is the server's own, and not the market's: it is what clocks are compared with.
const reportSQL = `
UPDATE replicas SET report = $2, reported_at = market_now() WHERE id = $1 RETURNING clock_timestamp()`

// Report writes what a process says of itself, and returns the time of the database's clock, which is zero where the process has left.
func (Store) Report(ctx context.Context, db postgres.DB, id uuid.UUID, text []byte) (clock time.Time, err error) {
	if len(text) > reportMax {
		return time.Time{}, fmt.Errorf("report of replica %s: %d bytes are too many", id, len(text))
	}
	switch err := db.QueryRow(ctx, reportSQL, id, string(text)).Scan(&clock); {
	case errors.Is(err, pgx.ErrNoRows):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("report of replica %s: %w", id, err)
	}
	return clock.UTC(), nil
}

const reportsSQL = `
SELECT id, address, report::text, reported_at
  FROM replicas
 WHERE heartbeat_at > market_now() - $1::interval AND report IS NOT NULL
 ORDER BY started_at, id LIMIT 1000`

// Reports returns what the processes say that run.
func (Store) Reports(ctx context.Context, db postgres.DB) ([]Report, error) {
	rows, err := db.Query(ctx, reportsSQL, AliveFor)
	if err != nil {
		return nil, fmt.Errorf("read the reports of replicas: %w", err)
	}
	reports, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Report, err error) {
		var text string
		err = row.Scan(&r.ID, &r.Address, &text, &r.At)
		r.Text = []byte(text)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the reports of replicas: %w", err)
	}
	return reports, nil
}
