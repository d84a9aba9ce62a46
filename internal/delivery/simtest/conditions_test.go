package simtest

import (
	"math/rand/v2"
	"time"

	"market/internal/call"
	"market/internal/outage"
)

const replicas = 4

// fleet stands for all replicas.
const fleet = -1

// A blackout is one outage of ours, as it is in truth.
type blackout struct {
	from, to time.Duration
	replica  int // or fleet
	// reason is what the replica sees of its own calls. UpstreamTimeout and UpstreamUnreachable look like the fault of the service.
	reason   call.Reason
	canaries bool // fail, too
}

// kinds of outages: what a replica sees, and whether its canaries fail. Two in five look like the doing of the services.
var kinds = []blackout{
	{reason: call.UpstreamTimeout}, {reason: call.UpstreamUnreachable},
	{reason: call.EgressDown, canaries: true}, {reason: call.EgressDown}, {reason: call.LocalError},
}

// A spell is a time in which the rail is out.
type spell struct{ from, to time.Duration }

// Conditions are what happens beside the services and the callers.
type conditions struct {
	outages []blackout
	rail    []spell
}

// longest is how long services alone make no outage known after one that excused as much as one can: what the policy promises is that those which are
// further apart are seen.
var longest = time.Duration(outage.Usual().Rest) * (outage.Usual().Most + outage.Usual().Back)

// horizon is how far conditions are drawn; no run is longer.
const horizon = 60 * 24 * time.Hour

func newConditions(seed uint64) conditions {
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a run is repeated by its seed
	lasts := func() time.Duration {
		return time.Minute + time.Duration(r.Int64N(int64(9*time.Minute))).Truncate(time.Millisecond)
	}
	var (
		c    conditions
		rest time.Duration // until services alone excuse again
	)
	for at := 35 * time.Minute; at < horizon; {
		o := kinds[r.IntN(len(kinds))]
		o.from, o.to, o.replica = at, at+lasts(), fleet
		if r.IntN(2) == 0 {
			o.replica = r.IntN(replicas)
		}
		if early := rest - o.from; !o.canaries && early > 0 {
			o.from, o.to = o.from+early, o.to+early
		}
		rest = o.to + aftermath + outage.Usual().Release + longest
		c.outages = append(c.outages, o)
		at = o.to + 20*time.Minute + time.Duration(float64(100*time.Minute)*r.ExpFloat64()).Truncate(time.Millisecond)
	}
	for at := 15 * time.Minute; at < horizon; {
		s := spell{at, at + lasts()}
		c.rail = append(c.rail, s)
		at = s.to + time.Duration(float64(5*time.Hour)*r.ExpFloat64()).Truncate(time.Millisecond)
	}
	return c
}

// outage returns the outage that a replica has now, counted from 1; 0: none.
func (c *conditions) outage(now time.Duration, replica int) int {
	for i, o := range c.outages {
		if now < o.from {
			return 0
		}
		if now < o.to && (o.replica == fleet || o.replica == replica) {
			return i + 1
		}
	}
	return 0
}

// railOut says whether no payment can be settled now.
func (c *conditions) railOut(now time.Duration) bool {
	for _, s := range c.rail {
		if now < s.from {
			return false
		}
		if now < s.to {
			return true
		}
	}
	return false
}
