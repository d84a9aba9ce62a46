package simtest

import (
	"fmt"
	"time"

	"market/internal/call"
	"market/internal/strikes"
)

// The bounds of what the market may make of an outage, as the documentation has them. The judges take from the market when it saw one, and hold that to
// these: what an outage excuses is as much a verdict as a strike is.
const (
	reachBack = 3 * time.Minute  // before it is seen, at most
	atMost    = 10 * time.Minute // that failures of services alone excuse
	// aftermath is how long after the end of an outage its last calls come back, and look like one.
	aftermath = 2 * time.Minute
	letGo     = time.Minute      // after what looks like an outage has ended, it is over
	lookEach  = 20 * time.Second // is the longest gap between two instants of a run, so that an end is seen so late
	slowest   = 30 * time.Second // that a call takes
)

// judgeTrips looks whether there is an outage in truth where one was seen, and excuses no more than it may.
func (r *run) judgeTrips(from int) {
	r.t.Helper()
	for _, t := range r.memory.guard.trips[from:] {
		if wrong := wrongBeginning(t, r.sequence.outages); wrong != "" {
			r.errorf("at %s %s", r.sequence.now, wrong)
		}
		r.open = append(r.open, t)
		for i, rec := range r.memory.records {
			for _, s := range rec.strikes {
				if s.state == strikes.Open && s.blames(t) {
					r.errorf("at %s an outage of %s is known, and %s keeps a strike of %s for it", r.sequence.now, scopeName(t.replica), slug(i), s.opened)
				}
			}
		}
	}
}

// wrongBeginning says what is wrong with an outage that was seen; empty: nothing.
func wrongBeginning(t *trip, outages []blackout) string {
	cause := causeOf(t, outages)
	if cause == 0 {
		return fmt.Sprintf("an outage of %s is seen, and there is none", scopeName(t.replica))
	}
	o, began := outages[cause-1], t.state.Began.Sub(beginning)
	if reaches := t.reaches(); reaches < max(o.from, began)-reachBack {
		return fmt.Sprintf("an outage of %s is seen that began at %s, and failures are excused from %s on", scopeName(t.replica), o.from, reaches)
	}
	return ""
}

// judgeEnds looks whether the outages that were seen end in time.
func (r *run) judgeEnds(now time.Duration) {
	r.t.Helper()
	open := r.open[:0]
	for _, t := range r.open {
		if wrong := wrongEnd(t, r.sequence.outages, now); wrong != "" {
			r.errorf("at %s %s", now, wrong)
		} else if t.state.Holds() {
			open = append(open, t)
		}
	}
	r.open = open
}

// wrongEnd says what is wrong with when an outage ends that was seen, as far as that is known now; empty: nothing.
func wrongEnd(t *trip, outages []blackout, now time.Duration) string {
	cause := causeOf(t, outages)
	if cause == 0 {
		return "" // which was told when it began
	}
	o, ended := outages[cause-1], now
	if !t.state.Ended.IsZero() {
		ended = t.state.Ended.Sub(beginning)
	}
	if ended > o.to+aftermath+letGo+lookEach {
		return fmt.Sprintf("the outage of %s that ended at %s is taken to go on until %s", scopeName(t.replica), o.to, ended)
	}
	if began := t.state.Began.Sub(beginning); !o.canaries && ended > began+atMost+lookEach {
		return fmt.Sprintf("failures of services alone excuse from %s until %s", began, ended)
	}
	return ""
}

// judgeMissed looks whether every outage was seen that has to be.
func (r *run) judgeMissed() {
	r.t.Helper()
	for _, i := range missed(r.patterns.plain, r.memory.guard.trips, r.sequence.outages) {
		r.errorf("the outage of %s from %s until %s failed services as it must not, and was not seen", scopeName(r.sequence.outages[i].replica),
			r.sequence.outages[i].from, r.sequence.outages[i].to)
	}
}

// missed returns which of the outages were not seen that are plain.
func missed(plain map[int]bool, trips []*trip, outages []blackout) (all []int) {
	seen := map[int]bool{}
	for _, t := range trips {
		seen[causeOf(t, outages)-1] = true
	}
	for i := range outages {
		if plain[i] && !seen[i] {
			all = append(all, i)
		}
	}
	return all
}

// patterns finds the outages in truth that nobody may overlook, as their calls fail for what looks like the doing of five services of three providers
// within a minute in which nobody was served where they strike.
type patterns struct {
	providerOf []int
	served     []time.Duration // when a service served somebody last
	recent     []end           // failures of the newest outage
	plain      map[int]bool    // by place
}

func newPatterns(providerOf []int) patterns {
	p := patterns{providerOf: providerOf, plain: map[int]bool{}}
	for range providerOf {
		p.served = append(p.served, -2*aDay)
	}
	return p
}

// see takes the next recorded call in.
func (p *patterns) see(e end, outages []blackout) {
	if !e.caller.outside() || !e.wasAsked() {
		return
	}
	if e.truth == delivered {
		p.served[e.service] = e.at
	}
	if !looksOwn(e) || e.outage == 0 || p.plain[e.outage-1] {
		return
	}
	if len(p.recent) > 0 && p.recent[0].outage != e.outage {
		p.recent = p.recent[:0]
	}
	p.recent = append(p.recent, e)
	// Whoever was asked before the outage is back by then, and no success of before is in the same minute any more.
	if e.at < outages[e.outage-1].from+slowest+oneIncident || e.at > outages[e.outage-1].to {
		return
	}
	failed, of := map[int]bool{}, map[int]bool{}
	for _, f := range p.recent {
		if f.at > e.at-oneIncident && p.served[f.service] > e.at-aDay {
			failed[f.service], of[p.providerOf[f.service]] = true, true
		}
	}
	if len(failed) >= 5 && len(of) >= 3 {
		p.plain[e.outage-1] = true
	}
}

// looksOwn says whether a failure of ours looks like the doing of its service.
func looksOwn(e end) bool {
	return e.truth == ours && (e.reason == call.UpstreamTimeout || e.reason == call.UpstreamUnreachable)
}

// blames says whether all that a strike rests on is failures of ours, by the truth, in the two minutes before an outage was seen.
func (s *strike) blames(t *trip) bool {
	for _, f := range s.evidence {
		if f.truth != ours || t.replica != fleet && f.replica != t.replica || f.at < t.state.Began.Sub(beginning)-2*time.Minute {
			return false
		}
	}
	return true
}

// causeOf returns the outage that was seen, counted from 1; 0: none.
func causeOf(t *trip, outages []blackout) int {
	began := t.state.Began.Sub(beginning)
	for i, o := range outages {
		if began >= o.from && began <= o.to+aftermath && (o.replica == fleet || t.replica == fleet || o.replica == t.replica) {
			return i + 1
		}
	}
	return 0
}

func scopeName(replica int) string {
	if replica == fleet {
		return "the fleet"
	}
	return fmt.Sprintf("replica %d", replica)
}
