package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
)

const (
	sweepEvery = time.Second
	// roundTime bounds one round; what it did not come to is looked at in the next.
	roundTime   = 30 * time.Second
	looksAtOnce = 16
	// lookBack is how many blocks before the claim a transfer is looked for: whoever saw the authorization may have sent it before us.
	lookBack = 1_800
	// resendTime bounds the sending of a payment that dropped out of the chain.
	resendTime = 10 * time.Second
)

// The states of a payment's own life.
const (
	paymentSent  = "sent"
	paymentMined = "mined"
	paymentFinal = "final"
	paymentLost  = "lost"
)

// A Chain proves what became of a payment.
type Chain interface {
	FindSettlement(ctx context.Context, want chain.Expect, fromBlock uint64) (chain.Proof, bool, error)
	Locate(ctx context.Context, want chain.Expect, transaction common.Hash) (proof chain.Proof, depth int, found bool, err error)
	LapsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, validBefore uint64, depth int) (bool, error)
	UsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, depth int) (bool, error)
}

// Sweep finishes what nobody walks any more, until ctx ends: calls whose process died or whose settlement stayed unclear, and payments that
// are not final yet. It reads the chain and never shows an authorization to it, but for a payment that the chain had taken already and
// dropped. Every replica runs it.
func (p *Path) Sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		round, cancel := context.WithTimeout(ctx, roundTime)
		if err := p.SweepOnce(round); err != nil && ctx.Err() == nil {
			p.OnError(fmt.Errorf("sweep: %w", err))
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// SweepOnce looks once at everything that is due.
func (p *Path) SweepOnce(ctx context.Context) error {
	calls, err := takeLooks(ctx, p.DB)
	if err != nil {
		return err
	}
	// One result a call, each written by its own goroutine: a node that is slow for one call does not hold up the others.
	results := make([]struct {
		isFinal bool
		err     error
	}, len(calls))
	var looking errgroup.Group
	looking.SetLimit(looksAtOnce)
	for i, c := range calls {
		looking.Go(func() error {
			results[i].isFinal, results[i].err = p.look(ctx, c)
			return nil
		})
	}
	_ = looking.Wait() // the results hold what went wrong
	var (
		errs []error
		deep []call.ID
	)
	for i, r := range results {
		if r.err != nil && !errors.Is(r.err, payment.ErrMoved) {
			errs = append(errs, fmt.Errorf("look at call %s: %w", calls[i].ID, r.err))
		}
		if r.isFinal {
			deep = append(deep, calls[i].ID)
		}
	}
	return errors.Join(append(errs, final(ctx, p.DB, deep))...)
}

// look takes one call a step further. isFinal reports that its payment stands deep enough, which is written for many at once.
func (p *Path) look(ctx context.Context, c openCall) (isFinal bool, err error) {
	rail, known := p.rail(c.Network)
	if !known {
		return false, fmt.Errorf("it was paid on %s, which is not configured any more", c.Network)
	}
	switch c.PaymentState {
	case paymentMined:
		if isFinal, err = p.follow(ctx, rail, c); err != nil {
			return false, err
		}
	case paymentSent:
		return false, p.sendAgain(ctx, rail, c)
	}
	switch c.State {
	case call.Settling, call.Unknown, call.Rejected:
		return false, p.resolve(ctx, rail, c)
	case call.Expired:
		return false, p.recordSwept(ctx, c, call.SettleFailed, "the payment never reached the chain, and its time is over", 0, nil)
	case call.Settled:
		return isFinal, p.endSettled(ctx, rail, c)
	case call.Asked:
		return isFinal, p.recordSwept(ctx, c, call.Interrupted, "we stopped while the service was being asked", 0, &rail)
	case call.StateReleased, call.StateServed, call.StateRefused, call.StateFailed, call.StateCooldownRefused:
	}
	return isFinal, nil
}

// resolve finds out what became of an authorization that was, or may have been, shown.
func (p *Path) resolve(ctx context.Context, rail Rail, c openCall) error {
	want, s := c.Signed.Expect(), c.Signed
	proof, onChain, err := rail.Chain.FindSettlement(ctx, want, c.ClaimedBlock-min(c.ClaimedBlock, lookBack))
	if err != nil {
		return err
	}
	if onChain {
		proof, depth, onChain, err := rail.Chain.Locate(ctx, want, proof.Transaction)
		if err != nil || !onChain || depth < rail.Network.ServeAtDepth {
			return err // not deep enough yet
		}
		return found(ctx, p.DB, c, proof)
	}
	lapsed, err := rail.Chain.LapsedAt(ctx, s.Asset, s.From, s.Nonce, s.ValidBefore, rail.Network.Confirmations)
	if err != nil {
		return err
	}
	switch {
	case lapsed && c.State == call.Rejected:
		return p.recordSwept(ctx, c, call.SettleRejected, "the token refused the payment", 0, nil)
	case lapsed:
		return turn(ctx, p.DB, c, call.Expired, "its time is over and its nonce unused")
	}
	// A nonce that something else used is final at the configured depth: this authorization can never pay.
	used, err := rail.Chain.UsedAt(ctx, s.Asset, s.From, s.Nonce, rail.Network.Confirmations)
	if err != nil || !used {
		return err
	}
	if c.State == call.Rejected {
		return p.recordSwept(ctx, c, call.SettleRejected, "the payment's nonce was used by something else", 0, nil)
	}
	return turn(ctx, p.DB, c, call.Rejected, "its nonce was used by something else")
}

// endSettled ends a settled call that nobody came back for within the grace, or that was refused before its money was found.
func (p *Path) endSettled(ctx context.Context, rail Rail, c openCall) error {
	if c.Late {
		return p.recordSwept(ctx, c, call.LateSettlement, "the payment was refused, and moved after all", 0, &rail)
	}
	return p.recordSwept(ctx, c, call.Interrupted, "we stopped after the payment and before the service was asked", p.Grace, &rail)
}

// recordSwept ends a call that nobody walks. rail is nil where no money moved; grace is what a retry still has after the lease.
func (p *Path) recordSwept(ctx context.Context, c openCall, reason call.Reason, detail string, grace time.Duration, rail *Rail) error {
	d := c.delivery().end(reason, detail)
	d.grace = grace
	if rail != nil {
		d.Refund = c.refundOf(rail.Network.ChainID)
	}
	return p.Recorder.Record(ctx, d)
}

// follow reads where a mined payment stands.
func (p *Path) follow(ctx context.Context, rail Rail, c openCall) (isFinal bool, err error) {
	proof, depth, onChain, err := rail.Chain.Locate(ctx, c.Signed.Expect(), c.Proof.Transaction)
	if err != nil {
		return false, err
	}
	if !onChain {
		_, err := dropped(ctx, p.DB, c, paymentSent)
		return false, err
	}
	if proof != c.Proof {
		return false, lives(ctx, p.DB, c, paymentMined, proof, sweepEvery)
	}
	return depth >= rail.Network.Confirmations, nil
}

// sendAgain puts a payment that the chain dropped back on it, or writes it off once it is proved never to come back.
func (p *Path) sendAgain(ctx context.Context, rail Rail, c openCall) error {
	s := c.Signed
	lapsed, err := rail.Chain.LapsedAt(ctx, s.Asset, s.From, s.Nonce, s.ValidBefore, rail.Network.Confirmations)
	if err != nil {
		return err
	}
	if lapsed && c.State == call.Asked {
		return nil // its end says whether something is owed; looked at again
	}
	if lapsed {
		return p.lose(ctx, c)
	}
	sending, cancel := context.WithTimeout(ctx, resendTime)
	defer cancel()
	result := rail.Settler.Settle(sending, s)
	if result.Status != chain.StatusSettled {
		return result.Err // looked at again
	}
	return lives(ctx, p.DB, c, paymentMined, result.Proof, 0)
}

// lose writes a payment off: nothing is owed for money that the chain took back.
func (p *Path) lose(ctx context.Context, c openCall) error {
	return pgx.BeginFunc(ctx, p.DB, func(tx pgx.Tx) error {
		ours, err := dropped(ctx, tx, c, paymentLost)
		if err != nil || !ours {
			return err
		}
		if err := p.Recorder.refunds.Void(ctx, tx, c.ID); err != nil {
			return err
		}
		if c.State != call.Settled {
			return nil
		}
		d := c.delivery().end(call.SettlementLost, "the chain took the payment back")
		return p.Recorder.write(ctx, tx, d, false)
	})
}
