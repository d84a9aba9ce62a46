package facilitator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// retryPauses are waited between attempts to read a node that gave no sensible answer. What the asset says is not asked twice.
var retryPauses = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond}

// prepare simulates an authorization and reads what a transaction needs, both at once.
func (e *Engine) prepare(ctx context.Context, s chain.Signed) (chain.Tip, error) {
	var (
		tip      chain.Tip
		tipErr   error
		together sync.WaitGroup
	)
	together.Go(func() {
		tipErr = insist(ctx, func() (err error) {
			tip, err = e.node.Tip(ctx, e.gas.Address())
			return err
		})
	})
	err := e.simulate(ctx, s)
	together.Wait()
	if err != nil {
		return chain.Tip{}, err
	}
	if tipErr != nil {
		return chain.Tip{}, fmt.Errorf("read gas account %s: %w", e.gas.Address(), tipErr)
	}
	return tip, nil
}

// Simulate says whether an authorization would move its money now. It shows nothing to the chain. A *chain.Revert is the asset's refusal;
// anything else is trouble of ours.
func (e *Engine) Simulate(ctx context.Context, s chain.Signed) error {
	if err := e.permit(s); err != nil {
		return err
	}
	return e.simulate(ctx, s)
}

func (e *Engine) simulate(ctx context.Context, s chain.Signed) error {
	return insist(ctx, func() error { return e.simulateOnce(ctx, s) })
}

func (e *Engine) simulateOnce(ctx context.Context, s chain.Signed) error {
	if err := e.node.Simulate(ctx, e.gas.Address(), e.opts.GasLimit, s); err != nil {
		return fmt.Errorf("simulate settlement of %s: %w", s.Nonce, err)
	}
	return nil
}

// Shown says whether an authorization may have been shown to the chain already: by us, or by whoever else saw it. Its time may then be over
// and its money moved all the same, which Settle finds out.
func (e *Engine) Shown(ctx context.Context, s chain.Signed) (bool, error) {
	earlier, err := e.store.earlier(ctx, s)
	if err != nil || len(earlier) > 0 {
		return len(earlier) > 0, err
	}
	return e.used(ctx, s)
}

// used says whether the asset has taken the nonce of an authorization, for this one or another.
func (e *Engine) used(ctx context.Context, s chain.Signed) (used bool, err error) {
	err = insist(ctx, func() (err error) {
		used, err = e.node.AuthorizationUsed(ctx, s.Asset, s.From, s.Nonce)
		return err
	})
	return used, err
}

// insist repeats a read while the node is in trouble.
func insist(ctx context.Context, read func() error) error {
	err := read()
	for _, pause := range retryPauses {
		var trouble *chain.Trouble
		if !errors.As(err, &trouble) || !rest(ctx, pause) {
			break
		}
		err = read()
	}
	return err
}

// rest waits; false means that the context ended first.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// An attempt is an authorization with what is known of it already.
type attempt struct {
	chain.Signed
	shown common.Hash // an earlier transaction with it that the chain undid; zero where nothing ever left us
}

// stopped is the settlement of an attempt that ends before its own transaction. Once shown, an authorization is not released any more:
// anybody can put it on the chain.
func (a attempt) stopped(why string, payerFault bool, err error) chain.Settlement {
	status := chain.StatusReleased
	switch {
	case a.shown != common.Hash{} && payerFault:
		status = chain.StatusRejected
	case a.shown != common.Hash{}:
		status = chain.StatusUnknown
	}
	return chain.Settlement{Status: status, Transaction: a.shown, Why: why, PayerFault: payerFault, Err: err}
}

// refuse turns what stopped an attempt into its settlement.
func (e *Engine) refuse(ctx context.Context, a attempt, err error) chain.Settlement {
	var revert *chain.Revert
	if !errors.As(err, &revert) {
		return a.stopped(whyTrouble, false, err)
	}
	switch revert.Kind {
	case chain.RevertNonceUsed:
		return e.resolveUsed(ctx, a, err)
	case chain.RevertExpired:
		// The asset looks at the time first. The authorization may have paid before that was over.
		switch lapsed, failed := neverPaid(ctx, e.node, a.Signed); {
		case failed != nil:
			return unknown(a.shown, whyPending, fmt.Errorf("read nonce %s of an expired authorization: %w", a.Nonce, failed))
		case !lapsed:
			return e.resolveUsed(ctx, a, err)
		}
	case chain.RevertNotYetValid, chain.RevertInsufficient, chain.RevertBlocked, chain.RevertPaused, chain.RevertBadSignature, chain.RevertUnclear:
	}
	return a.stopped(revert.Code(), blames(ctx, e.node, a.Signed, revert), err)
}

// neverPaid says of an authorization that the asset calls expired whether one node shows both: a block past its time, and its nonce unused there. The node
// that said expired may be ahead of the one that is asked now, which would have its nonce unused because it does not know yet.
func neverPaid(ctx context.Context, node *chain.Node, s chain.Signed) (lapsed bool, err error) {
	err = insist(ctx, func() error {
		lapsed, err = node.LapsedAt(ctx, s.Asset, s.From, s.Nonce, s.ValidBefore, 1)
		return err
	})
	return lapsed, err
}

// blames asks the asset who of the two is on its blocklist, and takes the revert's word for everything else. The payer is not blamed
// where that cannot be read.
func blames(ctx context.Context, node *chain.Node, s chain.Signed, r *chain.Revert) bool {
	if r.Kind != chain.RevertBlocked {
		return r.PayerFault()
	}
	blocked, known, err := node.Blocked(ctx, s.Asset, s.From)
	return err == nil && (blocked || !known)
}
