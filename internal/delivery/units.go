package delivery

import (
	"context"
	"errors"
	"strings"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/facilitator"
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
	// ReserveCall sets n units aside for a new call with the first facilitator that takes work; when little is left, calls of a higher rank come first. Its
	// error is a *sources.LimitError where none does.
	ReserveCall(ctx context.Context, rank int, n int64) (*facilitator.Reservation, error)
	// LimitedFor says from memory why ReserveCall would refuse now; nil where it would not.
	LimitedFor(rank int) error
}

// reserve sets the units of a call aside, or refuses: a facilitator that is out is found out before anything is claimed. They are for this process to
// give back or to use up, and nothing of them is written down before a refund is owed: whoever dies before has lost two, which counts too much rather
// than too little.
func (p *Path) reserve(ctx context.Context, rail Rail, s *catalog.Service) (*facilitator.Reservation, *refusal.Error) {
	if rail.Units == nil || !rail.Units.Counts() {
		return nil, nil
	}
	own, cancel := detached(ctx, writeTime)
	defer cancel()
	units, err := rail.Units.ReserveCall(own, p.rankOf(s), unitsACall)
	if err != nil {
		return nil, p.closed(err)
	}
	return units, nil
}

// closed refuses work on a network that is not ready, until its source may be asked again where that is known.
func (p *Path) closed(cause error) *refusal.Error {
	limit, out := errors.AsType[*sources.LimitError](cause)
	if !out {
		return refusal.New(call.NotReady, "payments cannot be settled or refunded at the moment").WithUntil(p.Now().Add(readyRetry)).WithCause(cause)
	}
	return refusal.New(call.NotReady, "%s; nothing was charged", whatIsOut(limit)).WithUntil(p.Now().Add(limit.Wait)).WithCause(cause)
}

// limited says whether an error comes from a source that takes no work, which its own notice tells. Of one that only asks for a moment nobody is told: where
// that is all it ever does, nothing settles, and these errors are what says so.
func limited(err error) bool {
	limit, out := errors.AsType[*sources.LimitError](err)
	return out && limit.Why != sources.Paced
}

// soonest is the reason that ends first of those for which networks take no payment. What is not a limit may end at any moment.
func soonest(causes []error) (first error) {
	var earliest *sources.LimitError
	for _, cause := range causes {
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
