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
	// Sources is how many different networks (/24, or /48 of IPv6) the evidence has to come from. With fewer a service is held for a review instead
	// of being delisted. Zero and one: any evidence delists.
	Sources int
}

// A Verdict is what the strikes of a service mean for its place on the shelf.
type Verdict int

const (
	_     Verdict = iota // invalid, so that a forgotten case cannot pass for Stays
	Stays                // there are not enough
	Holds                // there are, but of too few sources: a person decides
	Delists
)

func (v Verdict) String() string {
	switch v {
	case Stays:
		return "stays"
	case Holds:
		return "held"
	case Delists:
		return "delisted"
	}
	return "invalid"
}

// Verdict says what so many open strikes inside the window mean, whose evidence comes from so many networks.
func (p Policy) Verdict(open, sources int) Verdict {
	switch {
	case open < p.Limit:
		return Stays
	case sources < p.Sources && p.Sources > 1:
		return Holds
	}
	return Delists
}
