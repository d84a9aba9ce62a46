package delivery

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/money"
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
// came in or a refund that left or became final in between makes the treasury look better than it is, and never worse.
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

// leftOf adds up the refunds that have left a treasury and are not final, as far as one round trip or two tell. Those beyond that count as having left:
// they are the newest.
func leftOf(ctx context.Context, db postgres.DB, node Nonces, p Purse) (money.Amount, error) {
	const looked = 2 * chain.UsedMax
	sent, err := refund.Store{}.Sent(ctx, db, p.Network, p.Asset, p.Treasury, 100*looked)
	if err != nil {
		return money.Amount{}, err
	}
	var left money.Amount
	for i := 0; i < len(sent); i += chain.UsedMax {
		part := sent[i:min(i+chain.UsedMax, len(sent))]
		used := make([]bool, len(part))
		if i < looked {
			nonces := make([]common.Hash, len(part))
			for j, s := range part {
				nonces[j] = s.Nonce
			}
			if used, err = node.Used(ctx, p.Asset, p.Treasury, nonces); err != nil {
				return money.Amount{}, fmt.Errorf("read which refunds have left treasury %s on %s: %w", p.Treasury, p.Network, err)
			}
		}
		for j, s := range part {
			if i >= looked || used[j] {
				left = left.Add(s.Amount)
			}
		}
	}
	return left, nil
}
