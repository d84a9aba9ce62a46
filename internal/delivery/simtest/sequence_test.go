package simtest

import (
	"cmp"
	"container/heap"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"market/internal/call"
)

// A sequence makes calls: the same ones for one seed, as long as the market answers the same. It keeps the calls under way and nothing of those
// that have ended.
type sequence struct {
	r        *rand.Rand
	services []*service
	conditions
	reach    []float64 // of the services' weights, added up
	now      time.Duration
	recorded int
	underWay underWay
	asked    int
	attack   attack
}

func newSequence(seed uint64) *sequence {
	s := &sequence{r: rand.New(rand.NewPCG(seed, 0)), services: newServices(seed), conditions: newConditions(seed)} //nolint:gosec // a run is repeated by its seed
	sum := 0.0
	for _, service := range s.services {
		sum += service.weight
		s.reach = append(s.reach, sum)
	}
	s.attack.from = 30 * time.Minute
	return s
}

// A shelf is what a sequence has to know of a market before it asks a service.
type shelf interface {
	standing(service int, now time.Duration) (sells, rests bool)
}

// lattice is where most things happen: with cooldowns of a minute, calls are often asked to the microsecond when one ends.
const lattice = 500 * time.Millisecond

var gaps = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, lattice, time.Second, time.Second, 3 * time.Second, 5 * time.Second,
	10 * time.Second, 10 * time.Second, 20 * time.Second}

// advance moves to the next instant and returns the calls that are recorded at it: failures last, each group in the order of their calls.
func (s *sequence) advance() []end {
	gap := gaps[s.r.IntN(len(gaps))]
	if off := s.now % lattice; off != 0 {
		gap = lattice - off
	}
	s.now += gap
	var due []end
	for len(s.underWay) > 0 && s.underWay[0].at <= s.now {
		due = append(due, heap.Pop(&s.underWay).(end)) //nolint:errcheck // it holds nothing else
	}
	slices.SortFunc(due, func(a, b end) int {
		return cmp.Or(cmp.Compare(late(a), late(b)), cmp.Compare(a.n, b.n))
	})
	for i := range due {
		s.recorded++
		due[i].n, due[i].at = s.recorded, s.now
	}
	return due
}

func late(e end) int {
	if e.row.Outcome == call.Failed {
		return 1
	}
	return 0
}

// perSecond is how many calls there are now: few at first, then more by day than by night.
func (s *sequence) perSecond() float64 {
	if s.now < 6*time.Hour {
		return 1
	}
	return 2.3 * (1 + 0.6*math.Sin(2*math.Pi*s.now.Hours()/24))
}

// ask makes the calls of this instant, for the time since.
func (s *sequence) ask(market shelf, since time.Duration) {
	for range poisson(s.r, s.perSecond()*(s.now-since).Seconds()) {
		at := s.pick(market)
		many := 1
		if s.r.IntN(100) == 0 {
			many = 2 + s.r.IntN(9)
		}
		for range many {
			s.callOf(market, at, s.caller())
		}
	}
	s.poison(market)
}

// pick is a service that a caller finds; now and then one that has just left the shelf.
func (s *sequence) pick(market shelf) int {
	for try := 0; ; try++ {
		at, _ := slices.BinarySearch(s.reach, s.r.Float64()*s.reach[len(s.reach)-1])
		at = min(at, len(s.services)-1)
		if sells, _ := market.standing(at, s.now); sells || try > 0 && s.r.IntN(100) == 0 {
			return at
		}
	}
}

func (s *sequence) caller() caller {
	switch n := s.r.IntN(100); {
	case n < 4:
		return scanner
	case n < 9:
		return provider
	case n < 11:
		return forwarded
	}
	return ordinary
}

const ordinaryCallers = 3000

func (s *sequence) source(from caller, service int) netip.Addr {
	switch from {
	case scanner:
		return netip.AddrFrom4([4]byte{192, 0, 2, 10})
	case provider:
		return netip.AddrFrom4([4]byte{198, 51, byte(s.services[service].provider), 1})
	case poisoner:
		return netip.AddrFrom4([4]byte{203, 0, 113, byte(s.attack.nth)})
	case ordinary, forwarded:
	}
	n := s.r.IntN(ordinaryCallers)
	return netip.AddrFrom4([4]byte{100, byte(64 + n/256), byte(n), 7})
}

// callOf is one call from its first byte to its end, as far as it is decided when it is asked.
func (s *sequence) callOf(market shelf, at int, from caller) {
	e := end{service: at, replica: s.r.IntN(replicas), caller: from, source: s.source(from, at), asked: notAsked}
	s.asked++
	e.n = s.asked
	takes := 10 * time.Millisecond
	if reason, truth, refused := s.before(market, at); refused {
		e.reason, e.truth = reason, truth
	} else {
		e.asked = s.now
		a := s.reached(&e, at, from)
		e.reason, e.truth, e.wait, takes = a.reason, a.truth, a.wait, a.takes
	}
	e.at, e.row = s.now+takes, rowOf[e.reason]
	heap.Push(&s.underWay, e)
}

// before is what ends a call before its service is asked.
func (s *sequence) before(market shelf, at int) (call.Reason, doing, bool) {
	n := s.r.IntN(10_000)
	sells, rests := market.standing(at, s.now)
	switch {
	case !sells:
		return call.Withdrawn, ours, true
	case n < 200:
		return []call.Reason{call.InputInvalid, call.InputEmpty, call.InputTooLarge}[n%3], callers, true
	case s.railOut(s.now):
		return []call.Reason{call.SettleFailed, call.NotReady, call.Released, call.LateSettlement, call.SettlementLost}[n%5], rails, true
	case n < 205:
		return call.SettleRejected, callers, true
	case n < 210:
		return []call.Reason{call.LateSettlement, call.SettlementLost}[n%2], rails, true
	case n < 230 && s.services[at].class == flaky:
		return call.NotLive, flagged, true
	case n < 250:
		return call.OverCapacity, ours, true
	case rests:
		return call.InCooldown, rested, true
	}
	return "", 0, false
}

// connectTime is when a connection is given up.
const connectTime = 10 * time.Second

// reached is what comes of a call whose service is asked.
func (s *sequence) reached(e *end, at int, from caller) answer {
	if e.outage = s.outage(s.now, e.replica); e.outage > 0 {
		a := answer{reason: s.outages[e.outage-1].reason, truth: ours, takes: quick(s.r)}
		if a.reason == call.UpstreamTimeout || s.r.IntN(4) == 0 {
			a.takes = connectTime
		}
		return a
	}
	a := s.services[at].answers(s.r, s.now, from, s.r.IntN(10) == 0)
	switch n := s.r.IntN(10_000); {
	case n < 5:
		a.reason, a.truth = call.Interrupted, ours
	case a.truth != delivered:
	case n < 300:
		a.reason, a.truth = call.RejectedByService, callers
	case n < 320:
		a.reason, a.truth = call.CallerLeft, callers
	case n < 330:
		a.reason, a.truth = call.CallerStalled, callers
	}
	return a
}

// An attack is one address that sends poison to one service, as often as the service takes calls: refund_limit stops a wallet at its fifth refunded
// call, and a new wallet comes later.
type attack struct {
	nth, target, left int
	from              time.Duration
}

const attackCalls = 5

func (s *sequence) poison(market shelf) {
	a := &s.attack
	if s.now < a.from {
		return
	}
	if a.left == 0 {
		a.nth++
		a.left = attackCalls
		for a.target = s.r.IntN(len(s.services)); s.services[a.target].class != poisonable; {
			a.target = s.r.IntN(len(s.services))
		}
	}
	if sells, rests := market.standing(a.target, s.now); sells && !rests {
		s.callOf(market, a.target, poisoner)
		a.left--
	} else if !sells {
		a.left = 0
	}
	if a.left == 0 {
		a.from = s.now + time.Duration(float64(40*time.Minute)*s.r.ExpFloat64()).Truncate(time.Millisecond)
	}
}

// poisson draws how many things happen of which so many are to be expected.
func poisson(r *rand.Rand, mean float64) int {
	n, left := 0, math.Exp(-mean)
	for p := r.Float64(); p > left; p *= r.Float64() {
		n++
	}
	return n
}

// underWay are the calls that have not ended, the next one to end first.
type underWay []end

func (c underWay) Len() int { return len(c) }
func (c underWay) Less(i, j int) bool {
	return c[i].at < c[j].at || c[i].at == c[j].at && c[i].n < c[j].n
}
func (c underWay) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *underWay) Push(x any)   { *c = append(*c, x.(end)) } //nolint:errcheck // it holds nothing else
func (c *underWay) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}
