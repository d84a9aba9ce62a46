package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/outage"
	"market/internal/refusal"
)

// excuse makes the failures ours that an outage excuses: up to its end, where it has one, and of one replica, where it is one's. The guard finds the
// outage; what is changed of a delivery is changed here, as everything that a review changes.
func (r *Review) excuse(ctx context.Context, tx pgx.Tx, o outage.Outage, ended *time.Time, of *uuid.UUID) error {
	if _, err := tx.Exec(ctx, excuseSQL, o.ID, o.Reaches, ended, of, whyExcused); err != nil {
		return fmt.Errorf("excuse failures: %w", err)
	}
	return nil
}

const groundedSQL = `
SELECT EXISTS (SELECT 1 FROM strike_deliveries sd JOIN deliveries d ON d.id = sd.delivery_id
                WHERE sd.strike_id = $1 AND d.excused_by IS NULL)`

// stillGroundless refuses with Conflict where a strike has evidence that no outage excuses. The program finds what is groundless without a lock: a failure
// may have joined the strike while it waited for the row of the service, which is its own now.
func stillGroundless(ctx context.Context, tx pgx.Tx, strike uuid.UUID) error {
	var grounded bool
	if err := tx.QueryRow(ctx, groundedSQL, strike).Scan(&grounded); err != nil {
		return fmt.Errorf("look for other evidence of strike %s: %w", strike, err)
	}
	if grounded {
		return refusal.New(call.Conflict, "the strike has evidence that no outage excuses")
	}
	return nil
}
