package refund

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/money"
	"market/internal/postgres"
)

// Late are the refunds of one network and asset that are owed for longer than they take.
type Late struct {
	Network string
	Asset   common.Address
	Count   int
	Parked  int // of Count: nothing is tried for them but to look again
	Sum     money.Amount
	Oldest  time.Duration // since it is owed, of those that are looked at
	Why     string        // of the most of them, the parked ones first
}

// Those that are owed for half of the limit are looked at too, so that a few which are late one after another are one trouble: it ends when none is
// near the limit. Those that wait for a source of which is told that it is out ($4) are left out, however long it is: that was told with what waits for it.
const lateSQL = `
WITH unpaid AS (
	SELECT r.network, r.asset, r.amount, r.state, r.why, market_now() - r.owed_at AS age, coalesce(l.seconds, $3) * interval '1 second' AS most
	  FROM refunds r LEFT JOIN unnest($1::text[], $2::int[]) AS l (network, seconds) ON l.network = r.network
	 WHERE r.state NOT IN ('confirmed', 'void') AND r.waits_for <> ALL($4)
)
SELECT network, asset, count(*) FILTER (WHERE age >= most), count(*) FILTER (WHERE age >= most AND state = 'parked'),
       coalesce(sum(amount) FILTER (WHERE age >= most), 0)::text, max(age),
       coalesce(mode() WITHIN GROUP (ORDER BY why) FILTER (WHERE age >= most AND state = 'parked'),
                mode() WITHIN GROUP (ORDER BY why) FILTER (WHERE age >= most), '')
  FROM unpaid WHERE age >= most / 2
 GROUP BY network, asset ORDER BY network, asset LIMIT 100`

// Late returns the refunds that are owed for longer than the limit of their network, or than the one of all others. What is owed for half of it is
// there with a count of zero. told are the sources of which the operator knows that they are out.
func (Store) Late(ctx context.Context, db postgres.DB, limits map[string]time.Duration, others time.Duration, told []string) ([]Late, error) {
	var (
		networks []string
		seconds  []int32
	)
	for network, limit := range limits {
		networks, seconds = append(networks, network), append(seconds, int32(limit/time.Second)) //nolint:gosec // minutes
	}
	if told == nil {
		told = []string{} // no array at all would be equal to nothing, and leave all of them out
	}
	rows, err := db.Query(ctx, lateSQL, networks, seconds, int32(others/time.Second), told) //nolint:gosec // minutes
	if err != nil {
		return nil, fmt.Errorf("count late refunds: %w", err)
	}
	late, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Late, err error) {
		var asset []byte
		err = row.Scan(&l.Network, &asset, &l.Count, &l.Parked, &l.Sum, &l.Oldest, &l.Why)
		l.Asset = common.BytesToAddress(asset)
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("count late refunds: %w", err)
	}
	return late, nil
}

const sentNoncesSQL = `
SELECT nonce, amount FROM refunds
 WHERE network = $1 AND asset = $2 AND authorizer = $3 AND state = 'sent' ORDER BY owed_at LIMIT $4`

// A Sent is a refund that was shown to the chain and is not final.
type Sent struct {
	Nonce  common.Hash
	Amount money.Amount
}

// Sent returns the oldest refunds of a treasury that may have left it and still count as owed.
func (Store) Sent(ctx context.Context, db postgres.DB, network string, asset, treasury common.Address, limit int) ([]Sent, error) {
	rows, err := db.Query(ctx, sentNoncesSQL, network, asset[:], treasury[:], limit)
	if err != nil {
		return nil, fmt.Errorf("list refunds that were sent: %w", err)
	}
	sent, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Sent, err error) {
		var nonce []byte
		err = row.Scan(&nonce, &s.Amount)
		s.Nonce = common.BytesToHash(nonce)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("list refunds that were sent: %w", err)
	}
	return sent, nil
}
