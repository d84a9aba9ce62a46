package watch

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/money"
	"market/internal/notify"
	"market/internal/refund"
)

// A Node reads what a wallet holds.
type Node interface {
	Account(ctx context.Context, asset, owner common.Address, nonce common.Hash) (chain.AccountState, error)
	Used(ctx context.Context, asset, authorizer common.Address, nonces []common.Hash) ([]bool, error)
}

// An Engine of ours pays gas.
type Engine interface {
	Gas(ctx context.Context) (facilitator.Gas, error)
}

// A Network is one that is watched.
type Network struct {
	chain.Network
	Node   Node
	Engine Engine // nil where only others settle
}

// short says whether a treasury holds less than it owes. What has left it and is not final still counts as owed.
func short(holds, owed, left money.Amount) bool { return holds.Add(left).Cmp(owed) < 0 }

func treasuryKey(n Network, l delivery.Liability) key {
	return key{notify.TreasuryShort, fmt.Sprintf("%s/%s/%s", n.ID, symbol(n, l.Asset), l.Treasury)}
}

// treasury finds out whether a treasury can pay what it owes. The balance is read first: a refund that leaves in between then makes it look better than
// it is, and never worse.
func (w *Watch) treasury(ctx context.Context, n Network, l delivery.Liability) (finding, error) {
	f := finding{key: treasuryKey(n, l)}
	account, err := n.Node.Account(ctx, l.Asset, l.Treasury, common.Hash{})
	if err != nil {
		return finding{}, fmt.Errorf("read what treasury %s holds on %s: %w", l.Treasury, n.ID, err)
	}
	if !short(account.Balance, l.Owed(), money.Amount{}) {
		return f, nil
	}
	left, err := w.left(ctx, n, l)
	if err != nil {
		return finding{}, err
	}
	f.bad = short(account.Balance, l.Owed(), left)
	f.told = notify.Outage{
		What: fmt.Sprintf("the treasury %s on %s holds %s and owes %s: %s in refunds, and %s of calls under way", l.Treasury, n.ID, amount(n, l.Asset, account.Balance),
			amount(n, l.Asset, l.Owed()), amount(n, l.Asset, l.Refunds), amount(n, l.Asset, l.Open)),
		Effect: "refunds that it cannot pay wait, stay owed and go on by themselves once it can. Calls go on, and what they bring in pays what waits",
		Look: fmt.Sprintf("who moved its money: this program lets the treasury sign refunds and nothing else, so a key that somebody else has is to be replaced "+
			"(MARKET_TREASURY_RETIRED_KEYSTORES)\nthe balance of %s: send %s to it", l.Treasury, symbol(n, l.Asset)),
	}
	return f, nil
}

// left adds up the refunds that have left a treasury and are not final, as far as one round trip or two tell. Those beyond that count as having left:
// they are the newest.
func (w *Watch) left(ctx context.Context, n Network, l delivery.Liability) (money.Amount, error) {
	const looked = 2 * chain.UsedMax
	sent, err := refund.Store{}.Sent(ctx, w.DB, n.ID, l.Asset, l.Treasury, 100*looked)
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
			if used, err = n.Node.Used(ctx, l.Asset, l.Treasury, nonces); err != nil {
				return money.Amount{}, fmt.Errorf("read which refunds have left treasury %s on %s: %w", l.Treasury, n.ID, err)
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

// Bounds of the gas wallet, in transactions at the present fee. Fees double and halve all the time, so what is low stays low until there is twice as much.
const (
	gasLowBelow = 500
	gasFineFrom = 1000
)

// gasLow says whether a wallet is nearly empty, where it was or was not so when it was looked at last.
func gasLow(was bool, transactions int64) bool {
	if was {
		return transactions < gasFineFrom
	}
	return transactions < gasLowBelow
}

func gasFinding(n Network, gas facilitator.Gas, was bool) finding {
	return finding{key: key{notify.GasLow, n.ID}, bad: gasLow(was, gas.Transactions), told: notify.Outage{
		What: fmt.Sprintf("the gas wallet %s on %s has gas for %d more settlements or refunds at the present fee; it holds %s wei", gas.Address, n.ID, gas.Transactions, gas.Balance),
		Effect: fmt.Sprintf("all goes on for now. With gas for fewer than %d our own engine settles nothing more there: where no other facilitator does, calls are then refused with "+
			"503 before anybody is charged, and refunds wait. This is over once there is gas for %d", gas.Least, gasFineFrom),
		Look: fmt.Sprintf("the balance of %s: send it what pays for gas on that network", gas.Address),
	}}
}

// symbol is the name of an asset for people; its address where it is not configured any more.
func symbol(n Network, asset common.Address) string {
	if a, known := n.Asset(asset); known {
		return a.Symbol
	}
	return asset.Hex()
}

// amount is a sum for people.
func amount(n Network, asset common.Address, a money.Amount) string {
	if known, ok := n.Asset(asset); ok {
		return a.USD(known.Decimals).String() + " " + known.Symbol
	}
	return a.String() + " units of " + asset.Hex()
}
