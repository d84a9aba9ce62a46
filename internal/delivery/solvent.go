package delivery

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/money"
	"market/internal/payout"
	"market/internal/postgres"
	"market/internal/refund"
)

// Nonces says which authorizations of an account an asset has taken: a *chain.Node.
type Nonces interface {
	Used(ctx context.Context, asset, authorizer common.Address, nonces []common.Hash) ([]bool, error)
}

// A Purse is what a treasury holds of an asset, as of a block.
type Purse struct {
	Network         string
	Asset, Treasury common.Address
	Holds           money.Amount
	Block           uint64 // the balance has whatever came in below it
}

// short says whether a treasury holds less than it owes. What has left it and is not final still counts as owed.
func short(holds, owed, left money.Amount) bool { return holds.Add(left).Cmp(owed) < 0 }

// Short says whether a treasury held less than owed tells; where it seems so, what has left it is looked for on the chain, and what it owes is read again.
// It returns what it owes. The order is what makes a yes certain: the balance was read first, what was sent next, and what is owed last. So a payment that
// came in or a refund or payout that left or became final in between makes the treasury look better than it is, and never worse.
func Short(ctx context.Context, db postgres.DB, node Nonces, p Purse, owed Liability) (Liability, bool, error) {
	if !short(p.Holds, owed.Owed(), money.Amount{}) {
		return owed, false, nil
	}
	left, err := leftOf(ctx, db, node, p)
	if err != nil {
		return Liability{}, false, err
	}
	all, err := LiabilitiesOf(ctx, db, p.Network, p.Block)
	if err != nil {
		return Liability{}, false, err
	}
	owed = OwedBy(all, p.Network, p.Asset, p.Treasury)
	return owed, short(p.Holds, owed.Owed(), left), nil
}

// leftLooked is how many of each kind leftOf looks for.
const leftLooked = 2 * chain.UsedMax

// leftOf adds up the refunds and payouts that have left a treasury and are not final, as far as one round trip or two of each tell. Those beyond that count as
// having left: they are the newest.
func leftOf(ctx context.Context, db postgres.DB, node Nonces, p Purse) (money.Amount, error) {
	refunds, err := refund.Store{}.Sent(ctx, db, p.Network, p.Asset, p.Treasury, 100*leftLooked)
	if err != nil {
		return money.Amount{}, err
	}
	payouts, err := payout.Store{}.Sent(ctx, db, p.Network, p.Asset, p.Treasury, 100*leftLooked)
	if err != nil {
		return money.Amount{}, err
	}
	ofRefunds, err := usedOf(ctx, node, p, refunds, func(s refund.Sent) (common.Hash, money.Amount) { return s.Nonce, s.Amount })
	if err != nil {
		return money.Amount{}, err
	}
	ofPayouts, err := usedOf(ctx, node, p, payouts, func(s payout.Sent) (common.Hash, money.Amount) { return s.Nonce, s.Amount })
	return ofRefunds.Add(ofPayouts), err
}

func usedOf[T any](ctx context.Context, node Nonces, p Purse, sent []T, of func(T) (common.Hash, money.Amount)) (money.Amount, error) {
	var left money.Amount
	for i := 0; i < len(sent); i += chain.UsedMax {
		part := sent[i:min(i+chain.UsedMax, len(sent))]
		used := make([]bool, len(part))
		if i < leftLooked {
			nonces := make([]common.Hash, len(part))
			for j, s := range part {
				nonces[j], _ = of(s)
			}
			var err error
			if used, err = node.Used(ctx, p.Asset, p.Treasury, nonces); err != nil {
				return money.Amount{}, fmt.Errorf("read what has left treasury %s on %s: %w", p.Treasury, p.Network, err)
			}
		}
		for j, s := range part {
			if _, amount := of(s); i >= leftLooked || used[j] {
				left = left.Add(amount)
			}
		}
	}
	return left, nil
}
