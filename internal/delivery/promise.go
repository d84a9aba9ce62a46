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
	// What nobody has proved is not paid, and in none of the places above: Unproved is what a facilitator says has arrived, until that is proved or
	// lapses; Carried is what never came though a facilitator said so, and the call was served. The provider has its share of that from us.
	Unproved money.Amount
	Carried  money.Amount
	// Astray is how many payments are in none of these places, in two, or in one with another amount. The sums alone could hide two of them
	// that make up for each other.
	Astray int
}

// Balanced says whether all that was paid is in exactly one of the other places.
func (f Figure) Balanced() bool {
	elsewhere := f.Served.Add(f.RefundOwed).Add(f.RefundConfirmed).Add(f.Lost).Add(f.Pending)
	return f.Paid.Cmp(elsewhere) == 0 && f.Astray == 0
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
	return fmt.Sprintf("%s %x: paid %s = served %s + refund owed %s + refund confirmed %s + lost %s + pending %s; unproved %s, carried %s; astray: %d",
		f.Network, f.Asset, f.Paid, f.Served, f.RefundOwed, f.RefundConfirmed, f.Lost, f.Pending, f.Unproved, f.Carried, f.Astray)
}

// Each place is counted by what makes it that place and not as the rest of another one, so that a call which is in none or in two shows:
// a failure without its refund, a refund of something that was served. Money that was never proved is counted beside them: of a word that was
// false nothing is left to be refunded.
const promiseOneSQL = `
WITH payments AS (
	SELECT c.network, c.asset, c.amount, coalesce(r.amount, c.amount) AS returned,
	       c.transaction IS NOT NULL AS proved,
	       c.payment_state = 'lost' AS lost,
	       coalesce(d.outcome = 'served', false) AND c.payment_state <> 'lost' AS served,
	       coalesce(r.state IN ('owed', 'sent', 'parked'), false) AS owed,
	       coalesce(r.state = 'confirmed', false) AS confirmed,
	       d.id IS NULL AND c.payment_state <> 'lost' AS pending,
	       coalesce(d.outcome = 'served', false) AND c.payment_state = 'lost' AS carried
	  FROM calls c
	  LEFT JOIN deliveries d ON d.call_id = c.id
	  LEFT JOIN refunds r ON r.call_id = c.id
	 WHERE c.payment_state IS NOT NULL
)
SELECT network, asset, coalesce(sum(amount) FILTER (WHERE proved), 0),
       coalesce(sum(amount) FILTER (WHERE proved AND served), 0), coalesce(sum(returned) FILTER (WHERE proved AND owed), 0),
       coalesce(sum(returned) FILTER (WHERE proved AND confirmed), 0), coalesce(sum(amount) FILTER (WHERE proved AND lost), 0),
       coalesce(sum(amount) FILTER (WHERE proved AND pending), 0),
       coalesce(sum(amount) FILTER (WHERE NOT proved AND NOT lost), 0), coalesce(sum(amount) FILTER (WHERE NOT proved AND carried), 0),
       count(*) FILTER (WHERE returned <> amount OR CASE
		WHEN proved OR NOT lost THEN served::int + owed::int + confirmed::int + lost::int + pending::int <> 1
		ELSE owed OR confirmed END)
  FROM payments
 GROUP BY network, asset
 ORDER BY network, asset`

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
