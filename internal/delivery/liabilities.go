package delivery

import (
	"context"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/money"
	"market/internal/postgres"
)

// A Liability is what a treasury has received of one asset and may have to give back, or on to providers.
type Liability struct {
	Network  string
	Asset    common.Address
	Treasury common.Address
	Refunds  money.Amount // owed, and not final
	Open     money.Amount // of calls that are paid and have not ended
	Shares   money.Amount // that providers have earned and not been paid, as far as they are paid at all
}

// Owed is all of it.
func (l Liability) Owed() money.Amount { return l.Refunds.Add(l.Open).Add(l.Shares) }

// A payment that was believed and is not proved brought nothing yet, and its refund is not sent before it has: neither counts. Nor does one that is up for
// review after a restore: whether it was given back already is what the review finds, and until then nothing can be paid out for it. $1 is a network, or nothing
// for all; a payment counts that stands below the block $2, as far as whoever asks has seen the chain. Both halves are read by an index of what is open. The
// network is compared in a form that no index has: that of all transfers of a network would only tempt the planner.
//
// What providers are owed is in the books, which are added up but for what is newest; of it is taken away what stands at the block or above, and the shares of
// payments that the chain took back, which are paid out of nothing (see payout_postings). A payout that is not confirmed is still owed. A share of a seller
// without an account is nobody's to ask for.
const liabilitiesSQL = `
SELECT network, asset, treasury, coalesce(sum(refund), 0)::text, coalesce(sum(open), 0)::text, greatest(coalesce(sum(share), 0), 0)::text
  FROM (
	SELECT r.network, r.asset, r.authorizer AS treasury, r.amount AS refund, NULL::numeric AS open, NULL::numeric AS share
	  FROM refunds r JOIN calls c ON c.id = r.call_id
	 WHERE r.state NOT IN ('confirmed', 'void') AND c.payment_state IN ('mined', 'final')
	   AND r.network = coalesce(nullif($1, ''), r.network) AND c.block_number < $2
	UNION ALL
	SELECT c.network, c.asset, c.treasury, NULL, c.amount, NULL
	  FROM calls c
	 WHERE c.state IN ('settled', 'asked') AND NOT c.review AND c.payment_state IN ('mined', 'final')
	   AND c.network = coalesce(nullif($1, ''), c.network) AND c.block_number < $2
	UNION ALL
	SELECT network, asset, treasury, NULL, NULL, - amount
	  FROM ledger_standing WHERE account = 'provider' AND owner IS NOT NULL AND network = coalesce(nullif($1, ''), network)
	UNION ALL
	SELECT t.network, t.asset, t.treasury, NULL, NULL, p.amount
	  FROM (
		SELECT id FROM calls WHERE payment_state = 'mined' AND network = $1 AND block_number >= $2
		UNION ALL
		SELECT id FROM calls WHERE payment_state = 'final' AND network = $1 AND block_number >= $2
	  ) above
	  JOIN ledger_transactions t ON t.call_id = above.id
	  JOIN ledger_postings p ON p.transaction_id = t.id
	 WHERE p.account = 'provider' AND p.owner IS NOT NULL
	UNION ALL
	SELECT t.network, t.asset, t.treasury, NULL, NULL, p.amount
	  FROM calls c
	  JOIN ledger_transactions t ON t.call_id = c.id
	  JOIN ledger_postings p ON p.transaction_id = t.id
	 WHERE c.payment_state = 'lost' AND p.account = 'provider' AND p.owner IS NOT NULL AND c.network = coalesce(nullif($1, ''), c.network)
	   AND NOT EXISTS (SELECT 1 FROM payout_items i WHERE i.transaction_id = p.transaction_id AND i.line = p.line AND NOT i.released)
  ) owed
 GROUP BY network, asset, treasury
HAVING coalesce(sum(refund), 0) + coalesce(sum(open), 0) + greatest(coalesce(sum(share), 0), 0) > 0
 ORDER BY network, asset, treasury LIMIT 1000`

// Liabilities returns what every treasury may have to give back or on; one that owes nothing is not among them.
func Liabilities(ctx context.Context, db postgres.DB) ([]Liability, error) {
	return liabilities(ctx, db, "", math.MaxInt64)
}

// LiabilitiesOf is Liabilities on one network for what came in below a block. Of what came in since, a balance of that block may know nothing.
func LiabilitiesOf(ctx context.Context, db postgres.DB, network string, block uint64) ([]Liability, error) {
	return liabilities(ctx, db, network, block)
}

func liabilities(ctx context.Context, db postgres.DB, network string, block uint64) ([]Liability, error) {
	rows, err := db.Query(ctx, liabilitiesSQL, network, int64(min(block, math.MaxInt64))) //nolint:gosec // just bounded
	if err != nil {
		return nil, fmt.Errorf("add up what is owed: %w", err)
	}
	owed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Liability, err error) {
		var asset, treasury []byte
		err = row.Scan(&l.Network, &asset, &treasury, &l.Refunds, &l.Open, &l.Shares)
		l.Asset, l.Treasury = common.BytesToAddress(asset), common.BytesToAddress(treasury)
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("add up what is owed: %w", err)
	}
	return owed, nil
}

// OwedBy returns what a treasury owes of an asset; nothing where it is not among them.
func OwedBy(owed []Liability, network string, asset, treasury common.Address) Liability {
	for _, l := range owed {
		if l.Network == network && l.Asset == asset && l.Treasury == treasury {
			return l
		}
	}
	return Liability{Network: network, Asset: asset, Treasury: treasury}
}
