package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
)

const (
	// EndedMax is how many calls of one service are counted.
	EndedMax = 5_000
	// EndedWindow is how far back.
	EndedWindow = 30 * 24 * time.Hour
)

// An Ended is how many calls ended so.
type Ended struct {
	Outcome call.Outcome
	Calls   int
}

// Of each service the newest, by the index of its paid record: whoever sells very much waits no longer for the page than others.
const endedSQL = `
SELECT d.outcome, count(*)::int
  FROM (SELECT id FROM services WHERE owner_id = $1 ORDER BY id LIMIT 1000) s
 CROSS JOIN LATERAL (
	SELECT outcome FROM deliveries
	 WHERE service_id = s.id AND trial = false AND recorded_at > market_now() - $2::interval
	 ORDER BY recorded_at DESC LIMIT $3
 ) d
 GROUP BY d.outcome ORDER BY count(*) DESC, d.outcome LIMIT 20`

// EndedOf counts how the paid calls of an account's services ended, of the last EndedWindow and of each service at most its newest EndedMax, the most frequent
// first.
func EndedOf(ctx context.Context, db postgres.DB, owner uuid.UUID) ([]Ended, error) {
	rows, err := db.Query(ctx, endedSQL, owner, EndedWindow, EndedMax)
	if err != nil {
		return nil, fmt.Errorf("count how calls of account %s ended: %w", owner, err)
	}
	ended, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Ended])
	if err != nil {
		return nil, fmt.Errorf("count how calls of account %s ended: %w", owner, err)
	}
	return ended, nil
}
