package facilitator

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/readiness"
)

// A BacklogError means that new transactions would wait behind old ones, for long or for ever.
type BacklogError struct {
	Address common.Address
	Missing int64 // nonces that were handed out, are not mined, and have no stored transaction: nothing can close this gap
}

func (e *BacklogError) Error() string {
	if e.Missing > 0 {
		return fmt.Sprintf("gas wallet %s: %d nonces below the next one are neither on the chain nor stored", e.Address, e.Missing)
	}
	return fmt.Sprintf("gas wallet %s: a transaction has not been mined for too long", e.Address)
}

// Ready says whether a settlement would go through now: the node answers, the fee is under the ceiling, the gas balance covers
// Options.ReadySettlements at that fee, and nothing is stuck. A definite no is a *readiness.Denied for a *FeeError, *GasError or *BacklogError; any other
// error is the node's or the database's, and says nothing.
func (e *Engine) Ready(ctx context.Context) error {
	tip, err := e.node.Tip(ctx, e.gas.Address())
	if err != nil {
		return err
	}
	f, err := feesFor(tip, e.opts.FeeCeiling)
	if err != nil {
		return &readiness.Denied{Why: err}
	}
	need := f.cost(e.opts.GasLimit, uint64(e.opts.ReadySettlements)) //nolint:gosec // checked to be positive
	if tip.Balance.Cmp(need) < 0 {
		return &readiness.Denied{Why: &GasError{e.gas.Address(), tip.Balance, need, e.opts.ReadySettlements}}
	}
	handedOut, stored, stuck, err := e.store.backlog(ctx, tip.MinedNonce, e.opts.StuckAfter)
	if err != nil {
		return err
	}
	if stored < handedOut || stuck {
		return &readiness.Denied{Why: &BacklogError{Address: e.gas.Address(), Missing: max(0, handedOut-stored)}}
	}
	return nil
}
