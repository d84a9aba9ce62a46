package watch

import (
	"context"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/money"
	"market/internal/notify"
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

func treasuryKey(n Network, l delivery.Liability) key {
	return key{notify.TreasuryShort, fmt.Sprintf("%s/%s/%s", n.ID, symbol(n, l.Asset), l.Treasury)}
}

// treasury finds out whether a treasury can pay what it owes.
func (w *Watch) treasury(ctx context.Context, n Network, l delivery.Liability) (finding, error) {
	f := finding{key: treasuryKey(n, l)}
	account, err := n.Node.Account(ctx, l.Asset, l.Treasury, common.Hash{})
	if err != nil {
		return finding{}, fmt.Errorf("read what treasury %s holds on %s: %w", l.Treasury, n.ID, err)
	}
	purse := delivery.Purse{Network: n.ID, Asset: l.Asset, Treasury: l.Treasury, Holds: account.Balance, Block: math.MaxInt64}
	if l, f.bad, err = delivery.Short(ctx, w.DB, n.Node, purse, l); err != nil || !f.bad {
		return f, err
	}
	f.told = notify.Outage{
		What: fmt.Sprintf("the treasury %s on %s holds %s and owes %s: %s in refunds, %s of calls under way, and %s to providers", l.Treasury, n.ID, amount(n, l.Asset, account.Balance),
			amount(n, l.Asset, l.Owed()), amount(n, l.Asset, l.Refunds), amount(n, l.Asset, l.Open), amount(n, l.Asset, l.Shares)),
		Effect: "refunds that it cannot pay wait, stay owed and go on by themselves once it can; no payout leaves it before it holds all that it owes. Where it is the treasury that receives payments now, new calls that would be paid " +
			"there are refused with 503 before anybody is charged, because no refund of theirs can be promised; of one that was replaced nothing else stops. Calls under way end",
		Look: fmt.Sprintf("who moved its money: this program lets the treasury sign refunds and payouts and nothing else, so a key that somebody else has is to be replaced "+
			"(MARKET_TREASURY_RETIRED_KEYSTORES)\nthe balance of %s: send %s to it", l.Treasury, symbol(n, l.Asset)),
	}
	return f, nil
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
		return known.Sum(a)
	}
	return a.String() + " units of " + asset.Hex()
}
