package simtest

import (
	"time"

	"market/internal/call"
	"market/internal/outage"
)

// A guard is what memory has of outages of ours: what was asked and failed within the last minute, and what every replica saw.
type guard struct {
	policy     outage.Policy
	providerOf []int
	served     []time.Duration // when a service served somebody last
	recent     []ask
	trips      []*trip // in the order of their beginnings
	last       [1 + replicas]*trip
	firstOpen  int // of trips: those before it are settled
	stamp      int
	seen       struct{ asked, failed, providers []int }
}

// An ask is one call from outside whose service was asked.
type ask struct {
	at      time.Duration
	service int
	replica int
	failed  bool
}

// A trip is one outage that was seen.
type trip struct {
	replica int // or fleet
	state   outage.State
	settled bool
}

func (t *trip) reaches() time.Duration { return t.state.Reaches.Sub(beginning) }

// covers says whether the outage excuses a failure.
func (t *trip) covers(e end) bool {
	return (t.replica == fleet || t.replica == e.replica) && t.state.Excuses(moment(e.asked), moment(e.at))
}

func newGuard(providerOf []int) *guard {
	g := &guard{policy: outage.Usual(), providerOf: providerOf}
	g.seen.asked, g.seen.failed, g.seen.providers = make([]int, len(providerOf)), make([]int, len(providerOf)), make([]int, providers)
	for range providerOf {
		g.served = append(g.served, -1000*time.Hour)
	}
	return g
}

// hear takes a call in that is recorded now.
func (g *guard) hear(e end) {
	if !e.caller.origin().Counts() || !e.wasAsked() {
		return
	}
	if e.row.Outcome == call.Served && e.row.Party == call.Service {
		g.served[e.service] = e.at
	}
	g.recent = append(g.recent, ask{e.at, e.service, e.replica, outage.Joins(e.reason, true, e.caller.origin())})
}

// excuses says whether a failure that is being recorded is taken for ours. One that makes an outage known begins it.
func (g *guard) excuses(e end) bool {
	for _, t := range g.last {
		if t != nil && t.covers(e) {
			return true
		}
	}
	return outage.Joins(e.reason, true, e.caller.origin()) && (g.begins(e.at, e.replica) || g.begins(e.at, fleet))
}

func (g *guard) begins(now time.Duration, replica int) bool {
	last := g.last[1+replica]
	if last != nil && last.state.Holds() {
		return false
	}
	next := g.policy.Next(last.stateOrNone(), outage.Facts{At: moment(now), Failing: g.failing(now, replica, g.out(now, replica))})
	if next.Holds() {
		g.begin(replica, next)
	}
	return next.Holds()
}

func (t *trip) stateOrNone() outage.State {
	if t == nil {
		return outage.State{}
	}
	return t.state
}

func (g *guard) begin(replica int, s outage.State) {
	t := &trip{replica: replica, state: s}
	g.trips = append(g.trips, t)
	g.last[1+replica] = t
}

// down says which replicas have an outage of their own.
func (g *guard) down() (d [replicas]bool) {
	for i := range d {
		d[i] = g.last[1+i].stateOrNone().Holds()
	}
	return d
}

// out says which replicas are left out of what is counted: for the fleet those that have an outage of their own, or will have when they look.
func (g *guard) out(now time.Duration, counted int) (d [replicas]bool) {
	if counted != fleet {
		return d
	}
	d = g.down()
	for i := range d {
		d[i] = d[i] || g.policy.Trips(outage.Facts{Failing: g.failing(now, i, d)}) != ""
	}
	return d
}

// failing counts what happened within the window: of one replica, or of those of the fleet that are not left out.
func (g *guard) failing(now time.Duration, replica int, down [replicas]bool) outage.Failing {
	g.stamp++
	var f outage.Failing
	for i := len(g.recent) - 1; i >= 0 && g.recent[i].at > now-g.policy.Window; i-- {
		a := g.recent[i]
		if replica != fleet && a.replica != replica || replica == fleet && down[a.replica] || g.served[a.service] <= now-g.policy.Known {
			continue
		}
		if g.first(g.seen.asked, a.service) {
			f.Asked++
		}
		if a.failed && g.first(g.seen.failed, a.service) {
			f.Failed++
			if g.first(g.seen.providers, g.providerOf[a.service]) {
				f.Providers++
			}
		}
	}
	return f
}

func (g *guard) first(seen []int, i int) bool {
	if seen[i] == g.stamp {
		return false
	}
	seen[i] = g.stamp
	return true
}

// step is one look of a replica: at itself, at others that have an outage, and at the fleet.
func (g *guard) step(c *conditions, now time.Duration, replica int) {
	if len(g.recent) > 4096 {
		first := 0
		for first < len(g.recent) && g.recent[first].at <= now-g.policy.Window {
			first++
		}
		g.recent = append(g.recent[:0], g.recent[first:]...)
	}
	before := g.down()
	for of := range replicas {
		if of != replica && !before[of] {
			continue
		}
		facts := outage.Facts{At: moment(now), Failing: g.failing(now, of, before)}
		if of == replica {
			facts.Soundings = soundings(c, now, replica)
		}
		g.move(of, facts)
	}
	g.move(fleet, outage.Facts{At: moment(now), Failing: g.failing(now, fleet, g.out(now, fleet))})
}

func (g *guard) move(of int, f outage.Facts) {
	last := g.last[1+of]
	next := g.policy.Next(last.stateOrNone(), f)
	if !last.stateOrNone().Holds() && next.Holds() {
		g.begin(of, next)
	} else if last != nil {
		last.state = next
	}
}

// unsettled returns the outages of which not everything was found yet that they excuse.
func (g *guard) unsettled() []*trip {
	for g.firstOpen < len(g.trips) && g.trips[g.firstOpen].settled {
		g.firstOpen++
	}
	var all []*trip
	for _, t := range g.trips[g.firstOpen:] {
		if !t.settled {
			all = append(all, t)
		}
	}
	return all
}

// quiet says that no replica has anything to see: nobody's tick would change anything.
func (g *guard) quiet(c *conditions, now time.Duration) bool {
	if len(g.unsettled()) > 0 {
		return false
	}
	for replica := range replicas {
		if soundings(c, now, replica) != (outage.Soundings{}) {
			return false
		}
	}
	g.stamp++
	failed := 0
	for i := len(g.recent) - 1; i >= 0 && g.recent[i].at > now-g.policy.Window; i-- {
		if g.recent[i].failed && g.first(g.seen.failed, g.recent[i].service) {
			failed++
		}
	}
	return failed < g.policy.Services
}

// soundingsApart is how often a replica asks its canaries once one has failed.
const soundingsApart = 5 * time.Second

// soundings are what the canaries of a replica said by now.
func soundings(c *conditions, now time.Duration, replica int) outage.Soundings {
	nth := c.outage(now, replica)
	if nth == 0 || !c.outages[nth-1].canaries {
		return outage.Soundings{}
	}
	s := outage.Soundings{Failed: true}
	if now-c.outages[nth-1].from >= soundingsApart {
		s.Before = soundingsApart
	}
	return s
}
