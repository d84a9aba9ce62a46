package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/outage"
)

// excuse makes the failures ours that an outage excuses: up to its end, where it has one, and of one replica, where it is one's. The guard finds the
// outage; what is changed of a delivery is changed here, as everything that a review changes.
func (r *Review) excuse(ctx context.Context, tx pgx.Tx, o outage.Outage, ended *time.Time, of *uuid.UUID) error {
	if _, err := tx.Exec(ctx, excuseSQL, o.ID, o.Reaches, ended, of, whyExcused); err != nil {
		return fmt.Errorf("excuse failures: %w", err)
	}
	return nil
}
