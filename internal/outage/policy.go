package outage

import (
	"slices"
	"time"

	"market/internal/call"
)

// A Cause is what an outage was known by. The empty string is none.
type Cause string

const (
	Canaries Cause = "canaries" // no host that is always up could be reached from here
	Services Cause = "services" // so many services of so many providers failed at once that it is not they
)

// Causes returns every cause.
func Causes() []Cause { return []Cause{Canaries, Services} }

// A Policy says when failures are taken for ours. The zero value is no policy; Usual is the one that runs.
type Policy struct {
	Apart     time.Duration // two soundings that fail no further apart than this are a broken way out
	Window    time.Duration // within which failures count together
	Known     time.Duration // a service counts that served somebody within this time
	Share     int           // percent of the services that were asked
	Services  int           // that failed, at least
	Providers int           // that the failed services are of, at least
	Release   time.Duration // for which the condition must not have held before an outage ends, or before it is met anew
	Most      time.Duration // that failures of services alone excuse
	Rest      int           // times what they have excused is how long they alone begin no other outage
	Back      time.Duration // before its beginning an outage already excuses
}

// Usual is what runs.
//
// Back is the window in which the pattern became visible, and the two cooldowns of a minute that lie between three strikes: a service
// that our outage struck each time that it could be struck has all of its strikes within that time. What lies further back did
// not belong to the pattern, and excusing it would let broken services off.
//
// Rest is there because whoever has a few services under a few names can have them fail at once whenever they like, and be excused with them. So failures
// of services alone excuse a sixth of the time at most, and what is struck in the rest of it is enough to delist a service that goes on failing.
func Usual() Policy {
	return Policy{
		Apart: 10 * time.Second, Window: time.Minute, Known: 24 * time.Hour, Share: 50, Services: 5, Providers: 3,
		Release: time.Minute, Most: 10 * time.Minute, Rest: 5, Back: 3 * time.Minute,
	}
}

// Facts are what is known at one moment of one replica, or of the fleet.
type Facts struct {
	At        time.Time // market time
	Soundings Soundings
	Failing   Failing
}

// Soundings are what the canaries of a replica said last. The zero value is that there are none, or that one of them takes connections; the
// fleet has none of its own.
type Soundings struct {
	Failed bool          // in the newest round no canary took a connection
	Before time.Duration // since the round before that one, if no canary took a connection in it either; zero: one did
}

// Failing counts services within the window. Only those count that had served somebody within Known, and that calls from outside (call.Origin.Counts)
// asked in the window: those that nobody asked say nothing, so that a quiet market trips too. Replicas that have an outage of their own, or whose own facts
// trip, are left out of what is counted for the fleet: one broken replica is no outage of the others.
type Failing struct {
	Asked     int // different services that were asked
	Failed    int // of these, the services of which at least one call failed as Joins says
	Providers int // different providers of the failed services
}

// Joins says whether a failed call belongs to the pattern of an outage: its service was asked by somebody from outside, and either failed as it
// fails by its own doing, whether that was excused or not, or could not be reached for a trouble of ours. A call that we gave up, that its caller held
// up or that the rail ended says nothing about the way out.
func Joins(r call.Reason, asked bool, from call.Origin) bool {
	if !asked || !from.Counts() {
		return false
	}
	if r == call.EgressDown || r == call.LocalError {
		return true
	}
	row, ends := call.RowOf(r)
	return ends && row.Outcome == call.Failed && row.Party == call.Service
}

// Reasons are those that join, of whoever's call: see Joins.
func Reasons() []call.Reason {
	return slices.DeleteFunc(call.Reasons(), func(r call.Reason) bool { return !Joins(r, true, call.External) })
}

// Trips says by what an outage is known now; empty: by nothing.
func (p Policy) Trips(f Facts) Cause {
	switch {
	case f.Soundings.Failed && f.Soundings.Before > 0 && f.Soundings.Before <= p.Apart:
		return Canaries
	case f.Failing.Failed >= p.Services && f.Failing.Providers >= p.Providers && 100*f.Failing.Failed >= p.Share*f.Failing.Asked:
		return Services
	}
	return ""
}

// goesOn says whether what an outage was known by is still so. One sounding is enough: that two are needed is against a single unlucky one.
func (p Policy) goesOn(c Cause, f Facts) bool {
	switch c {
	case Canaries:
		return f.Soundings.Failed
	case Services:
		return p.Trips(Facts{Failing: f.Failing}) == Services
	}
	return false
}

// A State is what is known of the last outage of a replica, or of the fleet. The zero value is that there never was one.
type State struct {
	Cause   Cause
	Began   time.Time
	Reaches time.Time // back to here failures are excused
	// Held is when the condition held last. It moves on after the end of an outage that rested on failures of services alone: only when they have let
	// go for a while can they begin another.
	Held  time.Time
	Ended time.Time // zero: it holds
}

// Holds says that the outage is not over.
func (s State) Holds() bool { return s.Cause != "" && s.Ended.IsZero() }

// Excuses says whether a failure is taken for ours: it was recorded since the outage reaches back, and its call was asked before the outage ended.
func (s State) Excuses(asked, recorded time.Time) bool {
	return s.Cause != "" && !recorded.Before(s.Reaches) && (s.Ended.IsZero() || !asked.After(s.Ended))
}

// Next is where the facts lead from a state.
func (p Policy) Next(s State, f Facts) State {
	cause := p.Trips(f)
	if s.Holds() {
		if cause == Canaries {
			s.Cause = Canaries // and not by services alone any more
		}
		if p.goesOn(s.Cause, f) {
			s.Held = later(s.Held, f.At)
		}
		if p.over(s, f.At) {
			s.Ended = f.At
		}
		return s
	}
	switch cause {
	case Canaries:
		return p.begin(cause, s, f.At)
	case Services:
		if s.Cause == Services && (f.At.Sub(s.Held) < p.Release || f.At.Before(p.rested(s))) {
			s.Held = later(s.Held, f.At) // services have been excused for long enough
			return s
		}
		return p.begin(cause, s, f.At)
	}
	return s
}

// over says whether an outage that holds ends now.
func (p Policy) over(s State, now time.Time) bool {
	return now.Sub(s.Held) >= p.Release || s.Cause == Services && now.Sub(s.Began) >= p.Most
}

// rested is from when on services alone excuse again what they are the cause of, after an outage of theirs that is over. One that nobody looked at for
// long, while no replica ran, has excused no more for that.
func (p Policy) rested(last State) time.Time {
	return last.Ended.Add(time.Duration(p.Rest) * min(last.Ended.Sub(last.Reaches), p.Most+p.Back))
}

// begin is the outage that begins now. It does not reach back into the one before, which has excused what it excuses, nor into the rest after it.
func (p Policy) begin(c Cause, last State, now time.Time) State {
	s, from := State{Cause: c, Began: now, Reaches: now.Add(-p.Back), Held: now}, last.Ended
	if c == Services && last.Cause == Services {
		from = p.rested(last)
	}
	if s.Reaches = later(s.Reaches, from); s.Reaches.After(now) {
		s.Reaches = now
	}
	return s
}

// later is here because two replicas look one after the other and may write the other way round: nothing goes back by that.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
