package facilitator

import (
	"context"
	"errors"
	"fmt"

	"market/internal/chain"
)

var errUndone = errors.New("the transaction was mined and undone")

// resolveUsed settles an attempt whose nonce the asset has taken. Whoever saw the authorization may have sent it, and then it has paid;
// if its transfer is nowhere, the payer has used the nonce for something else.
func (e *Engine) resolveUsed(ctx context.Context, a attempt, cause error) chain.Settlement {
	var (
		proof chain.Proof
		found bool
	)
	err := insist(ctx, func() error {
		// The state was read before the logs, so a transfer that made it is in them.
		head, err := e.node.FreshHead(ctx)
		if err != nil {
			return err
		}
		from := head.Number - min(head.Number, e.opts.LookBack)
		proof, found, err = e.node.FindSettlement(ctx, a.Expect(), from)
		return err
	})
	switch {
	case err != nil:
		// It may have paid, so it is neither released nor refused.
		return unknown(a.shown, whyPending, fmt.Errorf("find transfer of used nonce %s: %w", a.Nonce, err))
	case found:
		return e.await(ctx, a.Signed, proof.Transaction)
	}
	used := &chain.Revert{Kind: chain.RevertNonceUsed}
	return a.stopped(used.Code(), true, cause)
}

// resolveReverted settles an attempt whose own transaction was undone. The asset says why when it is asked now; the payer is blamed
// only where that proves it.
func (e *Engine) resolveReverted(ctx context.Context, a attempt) chain.Settlement {
	var used bool
	err := insist(ctx, func() (err error) {
		used, err = e.node.AuthorizationUsed(ctx, a.Asset, a.From, a.Nonce)
		return err
	})
	if err != nil {
		return unknown(a.shown, whyPending, fmt.Errorf("read nonce %s of an undone settlement: %w", a.Nonce, err))
	}
	if used {
		return e.resolveUsed(ctx, a, errUndone)
	}
	rejected := chain.Settlement{Status: chain.StatusRejected, Transaction: a.shown, Why: whyFailed, Err: errUndone}
	err = insist(ctx, func() error {
		return e.node.Simulate(ctx, e.gas.Address(), e.opts.GasLimit, a.Signed)
	})
	var revert *chain.Revert
	if errors.As(err, &revert) && e.payerFault(ctx, a.Signed, revert) {
		rejected.Why, rejected.PayerFault = revert.Code(), true
	}
	if err != nil {
		rejected.Err = fmt.Errorf("%w; simulated again: %w", errUndone, err)
	}
	return rejected
}
