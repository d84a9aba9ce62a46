package simtest

import (
	"time"

	"market/internal/outage"
	"market/internal/strikes"

	"market/internal/call"
)

// A guard is what memory has of our outages: what was asked and failed within the last minute, and the state of each replica and of the fleet.
type guard struct {
	policy     outage.Policy
	providerOf []int
	knownSince []time.Duration // when a service served somebody last
	recent     []ask
	states     [1 + replicas]outage.State // of the fleet, then of the replicas
	trips      []trip
	stamp      int
	asked      []int
	failed     []int
	providers  []int
}

// An ask is one call that reached, or tried to reach, a service.
type ask struct {
	at      time.Duration
	service int
	replica int
	failed  bool
}

// A trip is one outage that the guard saw.
type trip struct {
	replica int // or fleet
	state   outage.State
}

const never = -1000 * time.Hour

func newGuard(providerOf []int) *guard {
	g := &guard{policy: outage.Usual(), providerOf: providerOf, asked: make([]int, len(providerOf)), failed: make([]int, len(providerOf)),
		providers: make([]int, providers)}
	for range providerOf {
		g.knownSince = append(g.knownSince, never)
	}
	return g
}

// heard takes a call in that was recorded.
func (g *guard) heard(e end) {
	from, row := e.caller.origin(), e.row()
	if !from.Counts() || !e.wasAsked() {
		return
	}
	if row.Outcome == call.Served {
		g.knownSince[e.service] = e.at
	}
	g.recent = append(g.recent, ask{e.at, e.service, e.replica, outage.Joins(row.Reason, true, from)})
}

// excuses says whether a failure is taken for ours.
func (g *guard) excuses(e end) bool {
	return g.states[0].Excuses(moment(e.asked), moment(e.at)) || g.states[1+e.replica].Excuses(moment(e.asked), moment(e.at))
}

// failing counts what happened within the window, of one replica or of all that have no outage of their own.
func (g *guard) failing(now time.Duration, replica int) outage.Failing {
	g.stamp++
	var f outage.Failing
	for _, a := range g.recent {
		if a.at <= now-g.policy.Window || replica != fleet && a.replica != replica ||
			replica == fleet && g.states[1+a.replica].Holds() || g.knownSince[a.service] <= now-g.policy.Known {
			continue
		}
		if g.asked[a.service] != g.stamp {
			g.asked[a.service] = g.stamp
			f.Asked++
		}
		if a.failed && g.failed[a.service] != g.stamp {
			g.failed[a.service] = g.stamp
			f.Failed++
			if of := g.providerOf[a.service]; g.providers[of] != g.stamp {
				g.providers[of] = g.stamp
				f.Providers++
			}
		}
	}
	return f
}

// tick moves the states on, and returns those that hold or have just ended.
func (g *guard) tick(c *conditions, now time.Duration) []trip {
	first := 0
	for first < len(g.recent) && g.recent[first].at <= now-g.policy.Window {
		first++
	}
	g.recent = append(g.recent[:0], g.recent[first:]...)
	var changed []trip
	for i := range g.states {
		replica := i - 1
		before := g.states[i]
		facts := outage.Facts{At: moment(now), Failing: g.failing(now, replica)}
		if replica != fleet {
			facts.Soundings = soundings(c, now, replica)
		}
		next := g.policy.Next(before, facts)
		g.states[i] = next
		if next.Holds() && !before.Holds() {
			g.trips = append(g.trips, trip{replica, next})
		}
		for t := len(g.trips) - 1; t >= 0; t-- {
			if g.trips[t].replica == replica {
				g.trips[t].state = next
				break
			}
		}
		if next.Holds() || before.Holds() {
			changed = append(changed, trip{replica, next})
		}
	}
	return changed
}

// soundingsApart is how often a replica asks its canaries while it has a suspicion.
const soundingsApart = 5 * time.Second

// soundings are what the canaries of a replica said by now. One that is suspected is sounded every five seconds.
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

var _ = strikes.None
