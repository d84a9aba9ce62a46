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

// A Liability is what a treasury has received of one asset and may have to give back.
type Liability struct {
	Network  string
	Asset    common.Address
	Treasury common.Address
	Refunds  money.Amount // owed, and not final
	Open     money.Amount // of calls that are paid and have not ended
}

// Owed is all of it.
func (l Liability) Owed() money.Amount { return l.Refunds.Add(l.Open) }

// A payment that was believed and is not proved brought nothing yet, and its refund is not sent before it has: neither counts. Nor does one that is up for
// review after a restore: whether it was given back already is what the review finds, and until then nothing can be paid out for it. $1 is a network, or nothing
// for all; a payment counts that stands below the block $2, as far as whoever asks has seen the chain. Both halves are read by an index of what is open. The
// network is compared in a form that no index has: that of all transfers of a network would only tempt the planner.
const liabilitiesSQL = `
SELECT network, asset, treasury, coalesce(sum(refund), 0)::text, coalesce(sum(open), 0)::text
  FROM (
	SELECT r.network, r.asset, r.authorizer AS treasury, r.amount AS refund, NULL::numeric AS open
	  FROM refunds r JOIN calls c ON c.id = r.call_id
	 WHERE r.state NOT IN ('confirmed', 'void') AND c.payment_state IN ('mined', 'final')
	   AND r.network = coalesce(nullif($1, ''), r.network) AND c.block_number < $2
	UNION ALL
	SELECT c.network, c.asset, c.treasury, NULL, c.amount
	  FROM calls c
	 WHERE c.state IN ('settled', 'asked') AND NOT c.review AND c.payment_state IN ('mined', 'final')
	   AND c.network = coalesce(nullif($1, ''), c.network) AND c.block_number < $2
  ) owed
 GROUP BY network, asset, treasury ORDER BY network, asset, treasury LIMIT 1000`

// Liabilities returns what every treasury may have to give back; one that owes nothing is not among them.
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
		err = row.Scan(&l.Network, &asset, &treasury, &l.Refunds, &l.Open)
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
