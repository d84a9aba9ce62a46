package readiness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"market/internal/pulse"
)

const (
	// lookMin and lookMax are the shortest and the longest pause from the beginning of one look to that of the next.
	lookMin = 500 * time.Millisecond
	lookMax = 10 * time.Second
)

var (
	errNoDatabase = errors.New("this process has not been heard of in the database for three heartbeats")
	errJoining    = errors.New("this process has just begun, or begun again, and the others may not know of it yet")
)

// whyOf says why a network is not ready, or only just.
func whyOf(c Capability, p Proof, allowance time.Duration) error {
	switch p.Cause {
	case CauseDenied:
		return fmt.Errorf("%s: %w", c, p.Why)
	case CauseNeverVerified:
		if p.Why != nil {
			return fmt.Errorf("%s has not been proved yet: %w", c, p.Why)
		}
		return fmt.Errorf("%s has not been proved yet", c)
	case CauseTooOld:
		if p.Why != nil {
			return fmt.Errorf("%s was proved %s ago, which is too long (%s): %w", c, p.Age.Truncate(time.Millisecond), allowance.Truncate(time.Millisecond), p.Why)
		}
		return fmt.Errorf("%s was proved %s ago, which is too long (%s)", c, p.Age.Truncate(time.Millisecond), allowance.Truncate(time.Millisecond))
	}
	return fmt.Errorf("%s: %w", c, p.Why)
}

// Refresh looks at a network again and again until ctx ends.
func (k *Keeper) Refresh(ctx context.Context, name string) {
	n := k.networks[name]
	for ctx.Err() == nil {
		began := k.opts.Now()
		k.look(ctx, n)
		pulse.Beat(ctx, lookMax)
		k.rest(ctx, n, began)
	}
}

// rest waits until it is time for the next look. What changes meanwhile may make it earlier, and never later.
func (k *Keeper) rest(ctx context.Context, n *network, began time.Time) {
	next := pause(k.paced(n))
	for {
		timer := time.NewTimer(next - k.opts.Now().Sub(began))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
			return
		case <-n.wake:
			timer.Stop()
			next = min(next, pause(k.paced(n)))
			k.mu.Lock()
			// What was looked at before this process might use it proves nothing.
			again := began.Before(k.notBefore)
			k.mu.Unlock()
			if again {
				return
			}
		}
	}
}

// useful is how long a proof of now may be used.
func (k *Keeper) useful(n *network) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	useful := n.allowed.last()
	for _, r := range []result{n.settle, n.refund} {
		if !r.until.IsZero() {
			useful = min(useful, r.until.Sub(r.good))
		}
	}
	return useful
}

// paced is what the pauses between looks are taken from.
func (k *Keeper) paced(n *network) time.Duration {
	useful := k.useful(n)
	if k.opts.Pace > 0 && k.opts.Own == (Terms{}) {
		useful = min(useful, k.opts.Pace)
	}
	return useful
}

// look looks at a network once, and takes in what is found. It takes a third of how long a proof may be used at most: with the pause before it, one that hangs
// leaves time for another.
func (k *Keeper) look(ctx context.Context, n *network) {
	limited, cancel := context.WithTimeout(ctx, min(k.opts.Limit, max(lookMin, k.useful(n)/3)))
	defer cancel()
	began := k.opts.Now()
	found := n.check(limited)
	if ctx.Err() != nil {
		return // we stopped, and not the authority
	}
	k.takeIn(n, found, began)
	k.news(n)
}

func (k *Keeper) takeIn(n *network, found Finding, began time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n.settle.found(found.Settle, began, found.ValidFor, k.notBefore)
	n.refund.found(found.Refund, began, found.ValidFor, k.notBefore)
	select {
	case <-n.looked:
	default:
		close(n.looked)
	}
}

// Looked waits until every network was looked at once, or until ctx ends.
func (k *Keeper) Looked(ctx context.Context) {
	for _, name := range k.names {
		select {
		case <-k.networks[name].looked:
		case <-ctx.Done():
			return
		}
	}
}

// news tells what has changed of a network. That it is not ready yet is none.
func (k *Keeper) news(n *network) {
	if k.opts.Changed == nil {
		return
	}
	k.mu.Lock()
	s := k.standing(n.name)
	var why error
	if !s.State.Admits() {
		why = k.closed(s)
	}
	first := s.Cause == CauseJoining || s.Cause == CauseNoDatabase && k.lastBeat.IsZero() || s.Cause == CauseNeverVerified && s.Settle.Why == nil && s.Refund.Why == nil
	changed := !first && (why == nil) != (n.told == nil)
	if changed {
		n.told = why
	}
	k.mu.Unlock()
	if changed {
		k.opts.Changed(n.name, why)
	}
}
