package delivery

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/money"
	"market/internal/postgres"
	"market/internal/refund"
)

// Which page is next is decided by the row that the last one ended with, and only where that is the wallet's own. The ids are found first, by an index alone.
const paidBySQL = `
SELECT c.id FROM calls c
 WHERE c.payer = $1 AND c.state = ANY($2)
   AND (c.created_at, c.id) < (CASE WHEN $3 = '00000000-0000-0000-0000-000000000000'::uuid THEN 'infinity'::timestamptz
                                    ELSE (SELECT created_at FROM calls WHERE id = $3 AND payer = $1) END, $3::uuid)
 ORDER BY c.created_at DESC, c.id DESC LIMIT $4`

// PaidBy returns at most limit calls that a wallet has claimed a payment for, in some states, the newest first, and only those before the call given, where one
// is. A call that was refused before its payment was shown to anybody claimed none, and is not among them. limit is of the caller.
func PaidBy(ctx context.Context, db postgres.DB, payer common.Address, states []call.State, before call.ID, limit int) ([]Record, error) {
	rows, err := db.Query(ctx, paidBySQL, payer[:], states, before, limit)
	return listed(ctx, db, rows, err)
}

// The states of a refund are few, and what is looked for among those of one wallet is not worth an index of its own.
const refundedToSQL = `
SELECT r.call_id FROM refunds r
 WHERE r.payer = $1 AND ($2 = '' OR r.state = $2)
   AND (r.owed_at, r.call_id) < (CASE WHEN $3 = '00000000-0000-0000-0000-000000000000'::uuid THEN 'infinity'::timestamptz
                                      ELSE (SELECT owed_at FROM refunds WHERE call_id = $3 AND payer = $1) END, $3::uuid)
 ORDER BY r.owed_at DESC, r.call_id DESC LIMIT $4`

// RefundedTo is PaidBy for the calls of which a wallet is owed a refund, or was: what was owed last comes first. An empty state is any.
func RefundedTo(ctx context.Context, db postgres.DB, payer common.Address, state refund.State, before call.ID, limit int) ([]Record, error) {
	rows, err := db.Query(ctx, refundedToSQL, payer[:], state, before, limit)
	return listed(ctx, db, rows, err)
}

func listed(ctx context.Context, db postgres.DB, rows pgx.Rows, err error) ([]Record, error) {
	if err != nil {
		return nil, fmt.Errorf("list calls of a wallet: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list calls of a wallet: %w", err)
	}
	return lookupAll(ctx, db, ids)
}

// SpendingMax is how many calls of a wallet are added up, of the newest.
const SpendingMax = 100_000

// A Spending is what became of the money that a wallet has signed for in one asset. The four are apart: what was signed for and never moved is in none.
type Spending struct {
	Network  string
	Asset    common.Address
	Calls    int
	Spent    money.Amount // for calls that were served
	Refunded money.Amount // it is back, which the chain proves
	Owed     money.Amount // it is on its way back
	Pending  money.Amount // of calls of which it is not known yet
}

// The cases are those of Record.Charged, and a test holds them together.
const spendingSQL = `
WITH newest AS (
	SELECT id, network, asset, amount, state, transaction, payment_state FROM calls
	 WHERE payer = $1 ORDER BY created_at DESC LIMIT $2
), told AS (
	SELECT c.network, c.asset, c.amount,
	       CASE WHEN r.state = 'confirmed' THEN 'refunded'
	            WHEN r.state IN ('owed', 'sent', 'parked') THEN 'owed'
	            WHEN c.state = 'served' AND c.payment_state = 'lost' THEN ''
	            WHEN c.state = 'served' AND (c.transaction IS NULL OR c.payment_state = 'sent') THEN 'pending'
	            WHEN c.state = 'served' THEN 'spent'
	            WHEN c.state IN ('settling', 'unknown', 'rejected', 'expired', 'settled', 'asked') THEN 'pending'
	            ELSE '' END AS went
	  FROM newest c LEFT JOIN refunds r ON r.call_id = c.id
)
SELECT network, asset, count(*)::int, coalesce(sum(amount) FILTER (WHERE went = 'spent'), 0)::text, coalesce(sum(amount) FILTER (WHERE went = 'refunded'), 0)::text,
       coalesce(sum(amount) FILTER (WHERE went = 'owed'), 0)::text, coalesce(sum(amount) FILTER (WHERE went = 'pending'), 0)::text
  FROM told GROUP BY network, asset ORDER BY network, asset LIMIT 100`

// SpendingOf adds up what a wallet has signed for, by network and asset. newest says that it has more than SpendingMax calls, and that the newest of them
// were added up.
func SpendingOf(ctx context.Context, db postgres.DB, payer common.Address) (all []Spending, newest bool, err error) {
	rows, err := db.Query(ctx, spendingSQL, payer[:], SpendingMax)
	if err != nil {
		return nil, false, fmt.Errorf("add up what a wallet spent: %w", err)
	}
	total := 0
	all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Spending, err error) {
		var asset []byte
		err = row.Scan(&s.Network, &asset, &s.Calls, &s.Spent, &s.Refunded, &s.Owed, &s.Pending)
		s.Asset = common.BytesToAddress(asset)
		total += s.Calls
		return s, err
	})
	if err != nil {
		return nil, false, fmt.Errorf("add up what a wallet spent: %w", err)
	}
	return all, total == SpendingMax, nil
}
