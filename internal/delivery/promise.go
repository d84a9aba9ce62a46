package delivery

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/money"
	"market/internal/postgres"
)

// Figures say where the money of every payment is that ever moved, for each network and asset.
type Figures []Figure

// A Figure says it for one asset of one network, in base units.
type Figure struct {
	Network         string
	Asset           []byte
	Paid            money.Amount // proved to have arrived, whatever became of it
	Served          money.Amount // it bought an answer
	RefundOwed      money.Amount // on its way back, from the record that owes it until its transfer is final
	RefundConfirmed money.Amount
	Lost            money.Amount // the chain took it back
	Pending         money.Amount // arrived, and the call has no outcome yet
}

// Balanced says whether all that was paid is in exactly one of the other places.
func (f Figure) Balanced() bool {
	elsewhere := f.Served.Add(f.RefundOwed).Add(f.RefundConfirmed).Add(f.Lost).Add(f.Pending)
	return f.Paid.Cmp(elsewhere) == 0
}

// Balanced says it of all.
func (fs Figures) Balanced() bool {
	for _, f := range fs {
		if !f.Balanced() {
			return false
		}
	}
	return true
}

func (f Figure) String() string {
	return fmt.Sprintf("%s %x: paid %s = served %s + refund owed %s + refund confirmed %s + lost %s + pending %s", f.Network, f.Asset,
		f.Paid, f.Served, f.RefundOwed, f.RefundConfirmed, f.Lost, f.Pending)
}

// Each place is counted by what makes it that place and not as the rest of another one, so that a call which is in none or in two shows:
// a failure without its refund, a refund of something that was served.
const promiseOneSQL = `
SELECT c.network, c.asset,
       sum(c.amount),
       coalesce(sum(c.amount) FILTER (WHERE d.outcome = 'served' AND c.payment_state <> 'lost'), 0),
       coalesce(sum(r.amount) FILTER (WHERE r.state IN ('owed', 'sent', 'parked')), 0),
       coalesce(sum(r.amount) FILTER (WHERE r.state = 'confirmed'), 0),
       coalesce(sum(c.amount) FILTER (WHERE c.payment_state = 'lost'), 0),
       coalesce(sum(c.amount) FILTER (WHERE d.id IS NULL AND c.payment_state <> 'lost'), 0)
  FROM calls c
  LEFT JOIN deliveries d ON d.call_id = c.id
  LEFT JOIN refunds r ON r.call_id = c.id
 WHERE c.transaction IS NOT NULL
 GROUP BY c.network, c.asset
 ORDER BY c.network, c.asset`

// PromiseOne returns the figures of our first promise: paid = served + refund owed + refund confirmed + lost + pending, at every instant.
// It is one statement and sees one instant.
func PromiseOne(ctx context.Context, db postgres.DB) (Figures, error) {
	rows, err := db.Query(ctx, promiseOneSQL)
	if err != nil {
		return nil, fmt.Errorf("read the figures of promise one: %w", err)
	}
	figures, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Figure])
	if err != nil {
		return nil, fmt.Errorf("read the figures of promise one: %w", err)
	}
	return figures, nil
}
