package facilitator

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

var (
	errNotYet = errors.New("the nonce is used, and not at the newest block that the node shows")
	errUndone = errors.New("the transaction was mined and undone")
	errUnseen = errors.New("the node that is asked now does not show that the transaction was mined and undone")
)

// resolveUsed settles an attempt whose nonce the asset has taken. Whoever saw the authorization may have sent it, and then it has paid;
// if its transfer is nowhere, the payer has used the nonce for something else.
func (e *Engine) resolveUsed(ctx context.Context, a attempt, cause error) chain.Settlement {
	var (
		proof chain.Proof
		found bool
	)
	err := insist(ctx, func() error {
		return chain.OneView(ctx, func(ctx context.Context) error {
			// The state is read before the logs, so a transfer that made it is in them, as long as they reach that block.
			used, block, err := e.node.UsedAt(ctx, a.Asset, a.From, a.Nonce, 1)
			if err != nil {
				return err
			}
			if !used {
				return errNotYet
			}
			proof, found, err = e.node.FindSettlementTo(ctx, a.Expect(), block-min(block, e.opts.LookBack), block)
			return err
		})
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

// An aftermath is what one node says of an authorization after a transaction with its nonce was undone.
type aftermath struct {
	used      bool  // its nonce, so it may have paid by another transaction: perhaps by the one that had this one undone
	simulated error // where it is not used
}

// afterUndone reads it from one node that shows the transaction mined and undone itself. Whoever showed that first may be gone, and the next one be some
// blocks behind: the nonce is unused there, and the asset takes the authorization, because that node does not know yet that it has paid.
func afterUndone(ctx context.Context, node *chain.Node, s chain.Signed, transaction common.Hash, simulate func(context.Context) error) (after aftermath, err error) {
	var unused bool
	err = insist(ctx, func() error {
		return chain.OneView(ctx, func(ctx context.Context) error {
			after, unused = aftermath{}, false
			receipts, err := node.Receipts(ctx, []common.Hash{transaction})
			if err != nil {
				return err
			}
			if _, v := judge(receipts[0], s.Expect(), node.Network().ServeAtDepth); v != verdictReverted {
				return errUnseen
			}
			if after.used, err = node.AuthorizationUsed(ctx, s.Asset, s.From, s.Nonce); err != nil || after.used {
				return err
			}
			unused = true
			after.simulated = simulate(ctx)
			if _, trouble := errors.AsType[*chain.Trouble](after.simulated); trouble {
				return after.simulated // another node, or the same one later, may say
			}
			return nil
		})
	})
	if unused {
		return after, nil // what the asset would say is not needed for it
	}
	return after, err
}

// resolveReverted settles an attempt that a transaction with its nonce was undone for. The asset says why when it is asked now; the payer is blamed
// only where that proves it.
func (e *Engine) resolveReverted(ctx context.Context, a attempt, transaction common.Hash) chain.Settlement {
	after, err := afterUndone(ctx, e.node, a.Signed, transaction, func(ctx context.Context) error { return e.simulateOnce(ctx, a.Signed) })
	if err != nil {
		return unknown(a.shown, whyPending, fmt.Errorf("read nonce %s of an undone settlement: %w", a.Nonce, err))
	}
	if after.used {
		return e.resolveUsed(ctx, a, errUndone)
	}
	err = after.simulated
	cause := errUndone
	if err != nil {
		cause = fmt.Errorf("%w; simulated again: %w", errUndone, err)
	}
	var revert *chain.Revert
	if errors.As(err, &revert) && blames(ctx, e.node, a.Signed, revert) {
		return a.stopped(revert.Code(), true, cause)
	}
	if a.shown == (common.Hash{}) {
		return a.stopped(whyTrouble, false, cause)
	}
	// Left unclear, each retry would pay gas for another undone transaction.
	if maybeWallet(err) && hasCode(ctx, e.node, a.Signed) {
		return a.stopped(whyFailed, true, cause)
	}
	return chain.Settlement{Status: chain.StatusRejected, Transaction: a.shown, Why: whyFailed, Err: cause}
}

// maybeWallet says whether a contract wallet can be why a transaction was undone, by what the asset says of it now. Such a wallet can say
// yes when it is simulated and no on the chain. Where the token is paused, our own side is blocked or our node is in trouble, it is no wallet's
// doing.
func maybeWallet(simulated error) bool {
	revert, reverted := errors.AsType[*chain.Revert](simulated)
	return simulated == nil || reverted && revert.Kind == chain.RevertUnclear
}

func hasCode(ctx context.Context, node *chain.Node, s chain.Signed) bool {
	account, err := node.Account(ctx, s.Asset, s.From, s.Nonce)
	return err == nil && account.HasCode
}

var errOther = errors.New("another authorization with this nonce is on its way")

// resolveOther settles an authorization after a transaction of another one with its nonce has succeeded.
func (e *Engine) resolveOther(ctx context.Context, s chain.Signed, tx sending) chain.Settlement {
	if _, err := e.prepare(ctx, s); err != nil {
		return e.refuse(ctx, attempt{Signed: s}, err)
	}
	// The nonce is unused after all, so the asset lies. Nothing more is sent before that transaction is final.
	return unknown(tx.hash, whyMismatch, errOther)
}
