package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"market/internal/call"
	"market/internal/payment"
	"market/internal/pulse"
)

const (
	sweepEvery = time.Second
	// roundTime bounds one round; what it did not come to is looked at in the next.
	roundTime   = 30 * time.Second
	looksAtOnce = 16
)

// Sweep finishes what nobody walks any more, until ctx ends: calls whose process died or whose settlement stayed unclear, and payments that
// are not final yet. It reads the chain and never shows an authorization to it, but for a payment that the chain had taken already and
// dropped. Every replica runs it.
func (p *Path) Sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		round, cancel := context.WithTimeout(ctx, roundTime)
		looked, err := p.sweep(round)
		if err != nil && ctx.Err() == nil {
			p.OnError(fmt.Errorf("sweep: %w", err))
		}
		cancel()
		pulse.Beat(ctx, sweepEvery)
		if looked == sweepMax && err == nil && ctx.Err() == nil {
			continue // more is due than one round holds
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// SweepOnce is one round of Sweep.
func (p *Path) SweepOnce(ctx context.Context) error {
	_, err := p.sweep(ctx)
	return err
}

// sweep looks once at what is due and returns how many calls that were.
func (p *Path) sweep(ctx context.Context) (looked int, err error) {
	calls, err := takeLooks(ctx, p.DB)
	if err != nil {
		return 0, err
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
	return len(calls), errors.Join(append(errs, final(ctx, p.DB, deep))...)
}

// look takes one call a step further. isFinal reports that its payment stands deep enough, which is written for many at once.
func (p *Path) look(ctx context.Context, c openCall) (isFinal bool, err error) {
	rail, known := p.rail(c.Network)
	if !known {
		return false, fmt.Errorf("it was paid on %s, which is not configured any more", c.Network)
	}
	switch c.PaymentState {
	case paymentMined:
		var stands bool
		if stands, isFinal, err = p.follow(ctx, rail, c); err != nil || !stands {
			return false, err
		}
	case paymentSent:
		return false, p.sendAgain(ctx, rail, c)
	case paymentLost:
		return false, p.recordSwept(ctx, c, call.SettlementLost, c.whyLost(), 0, nil)
	}
	if !c.Free || c.Review && c.proved() {
		return isFinal, nil
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

// proved says whether the chain has said what became of the call's payment. Up for review or not, that is for the chain to say; what follows from it is for
// whoever reviews.
func (c openCall) proved() bool { return c.State == call.Settled || c.State == call.Asked }

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
