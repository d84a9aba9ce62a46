package facilitator

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// priorityMin is what nodes ask at least, in wei per gas; some suggest 0 and then refuse it.
const priorityMin = 1_000_000

// fees are what one transaction offers, in wei per gas.
type fees struct {
	priority *big.Int
	max      *big.Int
}

// A FeeError means that the chain asks more per gas than we are willing to pay.
type FeeError struct{ BaseFee, Priority, Ceiling *big.Int }

func (e *FeeError) Error() string {
	return fmt.Sprintf("the chain asks %s + %s wei per gas, the ceiling is %s", e.BaseFee, e.Priority, e.Ceiling)
}

// feesFor offers the suggested priority fee and twice the base fee, which lasts six full blocks, under a ceiling that holds for the sum.
func feesFor(tip chain.Tip, ceiling *big.Int) (fees, error) {
	priority := new(big.Int).Set(tip.PriorityFee)
	if least := big.NewInt(priorityMin); priority.Cmp(least) < 0 {
		priority = least
	}
	if new(big.Int).Add(tip.BaseFee, priority).Cmp(ceiling) > 0 {
		return fees{}, &FeeError{tip.BaseFee, priority, ceiling}
	}
	most := new(big.Int).Lsh(tip.BaseFee, 1)
	most.Add(most, priority)
	if most.Cmp(ceiling) > 0 {
		most.Set(ceiling)
	}
	return fees{priority: priority, max: most}, nil
}

// cost is the most wei that so many transactions can take.
func (f fees) cost(gas uint64, transactions uint64) *big.Int {
	cost := new(big.Int).Mul(f.max, new(big.Int).SetUint64(gas))
	return cost.Mul(cost, new(big.Int).SetUint64(transactions))
}

// A GasError means that the gas wallet is too empty.
type GasError struct {
	Address     common.Address
	Balance     *big.Int // wei
	Need        *big.Int // wei
	Settlements int      // how many settlements and refunds Need is for
}

func (e *GasError) Error() string {
	return fmt.Sprintf("the gas wallet %s has %s wei and needs %s for %d settlements and refunds at the present fee", e.Address, e.Balance, e.Need, e.Settlements)
}
