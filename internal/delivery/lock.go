package delivery

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The lock is alone in its statement: what follows in the transaction then sees everything that was committed before the lock was had. It
// is weaker than FOR UPDATE, because every claim and every delivery refers to its service and holds a key share of that row until its own
// commit: a success that has cleared a strike would wait for us there, while we wait for the strike.
const lockServiceSQL = `
SELECT 1 FROM services WHERE id = $1 FOR NO KEY UPDATE`

// lockService makes the transaction the only one that adds to the strikes of a service.
func lockService(ctx context.Context, tx pgx.Tx, service uuid.UUID) error {
	var one int
	if err := tx.QueryRow(ctx, lockServiceSQL, service).Scan(&one); err != nil {
		return fmt.Errorf("lock service %s: %w", service, err)
	}
	return nil
}
