package readiness

import (
	"time"
)

// Heard takes in what this process read of the fleet, before it says with a heartbeat that it has: its allowance shrinks before another may rely on it.
//
// A process that is new, or that the others may have counted as dead, joins: it sends nothing before every other one has read the fleet with its row in it,
// and then proves for itself what it relies on. So nobody sends at the pace of a smaller fleet when it begins.
func (k *Keeper) Heard(r Reading) {
	k.mu.Lock()
	now := k.opts.Now()
	joined := k.join(r, now)
	k.fleet, k.readAt = FleetOf(k.opts.Self, k.opts.Own, r.Members), r.Sent
	shrunk := false
	for _, n := range k.networks {
		if k.opts.Own == (Terms{}) {
			continue
		}
		unproved, words := r.Unproved[n.name]
		n.words = words
		before, allowance := n.allowed.last(), k.fleet.Allowance(k.opts.Own, unproved)
		if allowance != before {
			n.allowed.now(now, allowance)
		}
		shrunk = shrunk || allowance < before || before == 0
	}
	k.mu.Unlock()
	for _, n := range k.networks {
		if joined || shrunk {
			select {
			case n.wake <- struct{}{}:
			default: // it is about to wake anyway
			}
		}
		k.news(n)
	}
}

// join goes a step further in joining, and says whether this reading was the last that it needed. The lock is held.
func (k *Keeper) join(r Reading, now time.Time) (joined bool) {
	if k.opts.Own == (Terms{}) {
		return false
	}
	seen, others, behind := false, false, false
	for _, m := range r.Members {
		if m.ID == k.opts.Self {
			seen = true
		} else {
			others = true
		}
	}
	lapsed := k.noDatabase(now)
	if k.joined && (lapsed || !seen && others) {
		k.joined, k.joinAt = false, time.Time{}
	}
	if k.joined {
		return false
	}
	switch {
	case !seen:
		k.joinAt = time.Time{} // the others cannot see us either
		return false
	case k.joinAt.IsZero() || lapsed:
		k.joinAt = r.At
	}
	for _, m := range r.Members {
		behind = behind || m.ID != k.opts.Self && m.Beat.Before(k.joinAt.Add(joinMargin))
	}
	if behind {
		return false
	}
	k.joined, k.notBefore = true, now
	for _, n := range k.networks {
		// Nothing is left of another life but a definite no.
		n.settle, n.refund = result{no: n.settle.no}, result{no: n.refund.no}
	}
	return true
}

// Beat says that a heartbeat was written which was begun at a time of this process's clock.
func (k *Keeper) Beat(sent time.Time) {
	k.mu.Lock()
	k.lastBeat = sent
	k.mu.Unlock()
	for _, n := range k.networks {
		k.news(n)
	}
}

// Leave says that this process takes its row away: it sends nothing any more.
func (k *Keeper) Leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = true
}
