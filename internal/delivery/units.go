package delivery

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"market/internal/call"
	"market/internal/facilitator"
	"market/internal/readiness"
	"market/internal/refund"
	"market/internal/refusal"
	sources "market/internal/source"
)

// unitsACall are set aside before a payment is claimed: one for its settlement, and one for the refund that it may come to. So what is taken can be given
// back, also where the guard is reached in between.
const unitsACall = 2

// Units are what a rail counts of what its facilitators are shown.
type Units interface {
	// Counts says whether anything is.
	Counts() bool
	// Reserve sets n units aside with the first facilitator that takes work. Its error is a *sources.LimitError where none does.
	Reserve(ctx context.Context, class sources.Class, n int64) (*facilitator.Reservation, error)
}

// reserve sets the units of a call aside, or refuses: a facilitator that is out is found out before anything is claimed. They are for this process to
// give back or to use up, and nothing of them is written down before a refund is owed: whoever dies before has lost two, which counts too much rather
// than too little.
func (p *Path) reserve(ctx context.Context, rail Rail) (*facilitator.Reservation, *refusal.Error) {
	if rail.Units == nil || !rail.Units.Counts() {
		return nil, nil
	}
	own, cancel := detached(ctx, writeTime)
	defer cancel()
	units, err := rail.Units.Reserve(own, sources.Settlement, unitsACall)
	if err != nil {
		return nil, p.closed(err)
	}
	return units, nil
}

// closed refuses work on a network that is not ready, until its source may be asked again where that is known.
func (p *Path) closed(cause error) *refusal.Error {
	limit, out := errors.AsType[*sources.LimitError](cause)
	if !out {
		words, wait := closedWords(cause)
		return refusal.New(call.NotReady, "%s; nothing was charged", words).WithUntil(p.Now().Add(wait)).WithCause(cause)
	}
	return refusal.New(call.NotReady, "%s; nothing was charged", whatIsOut(limit)).WithUntil(p.Now().Add(limit.Wait)).WithCause(cause)
}

// closedWords tells a caller why a network takes no payment, and when to ask again. What our own proofs lack is the operator's business.
func closedWords(cause error) (words string, wait time.Duration) {
	const generally = "payments cannot be settled or refunded at the moment"
	closed, ours := errors.AsType[*readiness.Closed](cause)
	if !ours {
		return generally, readyRetry
	}
	wait = cmp.Or(closed.Wait, readyRetry)
	switch closed.Cause {
	case readiness.CauseTooDear:
		return "one call costs more than this market settles at once; its operator has to raise that limit", awayRetry
	case readiness.CauseSpent:
		return "as much is being settled as this market settles in a second", wait
	case readiness.CauseStopped:
		return "the operator has stopped new payments here for now", max(wait, brokenRetry)
	}
	return generally, wait
}

// limited says whether an error comes from a source that takes no work, which its own notice tells. Of one that only asks for a moment nobody is told: where
// that is all it ever does, nothing settles, and these errors are what says so.
func limited(err error) bool {
	limit, out := errors.AsType[*sources.LimitError](err)
	return out && limit.Why != sources.Paced
}

// soonest is the reason that ends first of those for which networks take no payment. What is not a limit may end at any moment, but for a price that is too
// dear: that is the reason where there is no other.
func soonest(causes []error) (first error) {
	var earliest *sources.LimitError
	for _, cause := range causes {
		if closed, ours := errors.AsType[*readiness.Closed](cause); ours && closed.Cause == readiness.CauseTooDear {
			first = cmp.Or(first, cause)
			continue
		}
		limit, out := errors.AsType[*sources.LimitError](cause)
		if !out {
			return cause
		}
		if earliest == nil || limit.Until.Before(earliest.Until) {
			first, earliest = cause, limit
		}
	}
	return first
}

// whatIsOut tells a caller what kind of source is out. Which one is the operator's business.
func whatIsOut(limit *sources.LimitError) string {
	what := "a service that payments need"
	switch kind, _, _ := strings.Cut(limit.Source, "/"); kind {
	case sources.KindFacilitator.String():
		what = "the facilitator that settles payments"
	case sources.KindRPC.String():
		what = "the chain node that payments are checked with"
	}
	switch limit.Why {
	case sources.Paced:
		return what + " asks for a pause"
	case sources.Denied:
		return what + " does not take our requests"
	case sources.Guarded, sources.Exhausted:
	}
	return what + " has reached its limit"
}

// owed is the refund of a payment, with the unit that stays set aside for it.
func (h held) owed(back refund.Owed) *refund.Owed {
	back.UnitOf = h.units.SetAside()
	return &back
}
