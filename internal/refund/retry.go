package refund

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
)

const listSQL = findColumns + `
 WHERE ($1 = '' OR state = $1) AND ($2 = '00000000-0000-0000-0000-000000000000'::uuid OR call_id < $2) ORDER BY call_id DESC LIMIT $3`

// List returns at most limit refunds in one state, in any where it is empty: of the newest calls first, and only of those before the call given, where one is.
func (Store) List(ctx context.Context, db postgres.DB, state State, before uuid.UUID, limit int) ([]Refund, error) {
	rows, err := db.Query(ctx, listSQL, state, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list refunds: %w", err)
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("list refunds: %w", err)
	}
	return all, nil
}

// Of two admins one finds the refund parked, and so does of an admin and a worker that has just confirmed it. What was signed stays signed: the worker sends
// the very same authorization as long as that lives, and signs another only after its lapse is proved, whatever the state says.
const retrySQL = `
UPDATE refunds SET state = 'owed', next_at = market_now(), waits_for = '', retries = retries + 1
 WHERE call_id = $1 AND state = 'parked'
RETURNING call_id`

// Retry makes a parked refund owed and due now; false where it is not parked. Nothing else of it can be changed by hand: what is sent follows from the
// payment, and that it arrived is proved by the chain alone.
func (Store) Retry(ctx context.Context, db postgres.DB, id call.ID) (bool, error) {
	var retried call.ID
	err := db.QueryRow(ctx, retrySQL, id).Scan(&retried)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("retry refund of call %s: %w", id, err)
	}
	return true, nil
}
