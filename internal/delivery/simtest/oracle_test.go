package simtest

import (
	"time"

	"market/internal/call"
)

// An oracle says which services have to leave the shelf, and at which call. It knows the truth, and the rule as the documentation words it:
//
// A failure of the service's own doing, seen from outside, is an incident; those asked before a minute has passed since the incident began are the
// same one. A success asked after the last failure of an incident ends it. The third incident within 24 hours delists. While our own outage is known, nothing
// is an incident, nor is what consists of failures alone that an outage has excused since.
//
// It keeps the facts of a day, and counts anew from all of them each time.
type oracle struct {
	trips    func() []trip // outages as they were seen: that they were right is judged apart
	facts    [][]fact      // of each service, in the order of recording
	expected []*verdict    // of each service; nil: it stays
}

// A fact is one call that says something.
type fact struct {
	success   bool
	own       bool // the failure is the service's; otherwise it only looks so
	asked, at time.Duration
	replica   int
}

// A verdict is that a service leaves the shelf.
type verdict struct {
	n         int // of the call
	incidents []incident
}

// An incident is a group of failures.
type incident struct {
	began time.Duration
	facts []fact
	over  bool
}

func newOracle(services int, trips func() []trip) *oracle {
	return &oracle{trips: trips, facts: make([][]fact, services), expected: make([]*verdict, services)}
}

const (
	oneIncident = time.Minute
	aDay        = 24 * time.Hour
	third       = 3
)

// looksOwn says whether a failure of ours looks to a replica like the service's.
func looksOwn(r call.Reason) bool { return r == call.UpstreamTimeout || r == call.UpstreamUnreachable }

// see takes the next recorded call in.
func (o *oracle) see(e end) {
	if !e.caller.outside() || !e.wasAsked() {
		return
	}
	f := fact{success: e.truth == delivered, own: e.truth == ownFault, asked: e.asked, at: e.at, replica: e.replica}
	if !f.success && !f.own && !(e.truth == ours && looksOwn(e.reason)) {
		return
	}
	if !f.success && o.excused(f) {
		return
	}
	kept := o.facts[e.service]
	for len(kept) > 0 && kept[0].at < e.at-aDay-time.Hour {
		kept = kept[1:]
	}
	kept = append(kept, f)
	o.facts[e.service] = kept
	if f.success || o.expected[e.service] != nil {
		return
	}
	incidents := incidentsOf(kept)
	if last := incidents[len(incidents)-1]; len(last.facts) > 1 {
		return // the failure belongs to one that was there
	}
	var standing []incident
	for _, i := range incidents {
		if !i.over && i.began > e.at-aDay && !o.allExcused(i) {
			standing = append(standing, i)
		}
	}
	if len(standing) >= third {
		o.expected[e.service] = &verdict{n: e.n, incidents: standing}
	}
}

// incidentsOf groups failures, and ends those that a success came after.
func incidentsOf(facts []fact) []incident {
	var all []incident
	for _, f := range facts {
		switch last := len(all) - 1; {
		case f.success:
			for i := range all {
				if newest := all[i].facts[len(all[i].facts)-1]; newest.at < f.asked {
					all[i].over = true
				}
			}
		case last >= 0 && f.asked < all[last].began+oneIncident:
			all[last].facts = append(all[last].facts, f)
		default:
			all = append(all, incident{began: f.at, facts: []fact{f}})
		}
	}
	return all
}

// excused says whether an outage that was seen by now covers a failure.
func (o *oracle) excused(f fact) bool {
	trips := o.trips()
	for i := len(trips) - 1; i >= 0; i-- {
		t := trips[i]
		if !t.state.Ended.IsZero() && f.at-t.state.Ended.Sub(midnight) > time.Hour {
			break // no call takes so long
		}
		if (t.replica == fleet || t.replica == f.replica) && !midnight.Add(f.at).Before(t.state.Reaches) &&
			(t.state.Ended.IsZero() || !midnight.Add(f.asked).After(t.state.Ended)) {
			return true
		}
	}
	return false
}

func (o *oracle) allExcused(i incident) bool {
	for _, f := range i.facts {
		if !o.excused(f) {
			return false
		}
	}
	return true
}

// reconsider takes verdicts back that an outage undoes.
func (o *oracle) reconsider() {
	for s, v := range o.expected {
		if v == nil {
			continue
		}
		left := 0
		for _, i := range v.incidents {
			if !o.allExcused(i) {
				left++
			}
		}
		if left < third {
			o.expected[s] = nil
		}
	}
}
