package facilitator

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

// Gas is what the gas wallet of an engine still pays for.
type Gas struct {
	Address      common.Address
	Balance      *big.Int // wei
	Transactions int64    // settlements and refunds, at the most that one of them can cost at the present fee
	Least        int64    // with fewer the engine is not ready
}

// Gas reads it, by the same measure as Ready. The error is a *chain.Trouble or a *FeeError.
func (e *Engine) Gas(ctx context.Context) (Gas, error) {
	tip, err := e.node.Tip(ctx, e.gas.Address())
	if err != nil {
		return Gas{}, err
	}
	f, err := feesFor(tip, e.opts.FeeCeiling)
	if err != nil {
		return Gas{}, err
	}
	return Gas{Address: e.gas.Address(), Balance: tip.Balance, Transactions: f.pays(e.opts.GasLimit, tip.Balance),
		Least: int64(e.opts.ReadySettlements)}, nil
}

// gasMany is what a balance pays for that pays for more: nobody has to know by how much.
const gasMany = 1_000_000_000

// pays is how many transactions a balance is enough for.
func (f fees) pays(gas uint64, balance *big.Int) int64 {
	many := new(big.Int).Quo(balance, f.cost(gas, 1)) // the priority fee is never zero
	if !many.IsInt64() || many.Int64() > gasMany {
		return gasMany
	}
	return many.Int64()
}
