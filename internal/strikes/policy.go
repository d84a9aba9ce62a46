package strikes

import (
	"time"

	"market/internal/call"
)

// An Effect is what one finished call does to the strikes of its service.
type Effect int

const (
	_ Effect = iota // invalid, so that a forgotten case cannot pass for None
	None
	Increment
	Clear
)

func (e Effect) String() string {
	switch e {
	case None:
		return "none"
	case Increment:
		return "increment"
	case Clear:
		return "clear"
	}
	return "invalid"
}

// EffectOf says what a delivery does to the strikes of its service. Only evidence about the service moves them, and only when it comes
// from outside (Origin.Counts). A reason that is only flagged for review (Reason.Flags) moves nothing. An unknown outcome is None: a
// delivery is recorded inside a transaction that also owes a refund, and that must not roll back.
func EffectOf(o call.Outcome, p call.Party, r call.Reason, from call.Origin) Effect {
	if !from.Counts() || p != call.Service {
		return None
	}
	switch o {
	case call.Served:
		return Clear
	case call.Failed:
		if r.Flags() {
			return None
		}
		return Increment
	case call.Refused, call.CooldownRefused:
		return None
	}
	return None
}

// A Policy says when strikes delist.
type Policy struct {
	Limit  int           // open strikes that delist, 1 or more
	Window time.Duration // how far back an open strike counts
	// Fold is how long after a strike opened the calls that were already under way join it. Zero: every counted failure opens its own.
	Fold time.Duration
}

// Delists says whether so many open strikes inside the window take a service off the shelf.
func (p Policy) Delists(open int) bool { return open >= p.Limit }
