package simtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"market/internal/strikes"
)

// A run is one sequence in step with a market, and everybody who looks on.
type run struct {
	t        *testing.T
	seed     uint64
	started  time.Time
	sequence *sequence
	memory   *memory
	oracle   *oracle
	patterns patterns
	open     []*trip // whose end was not judged yet
	tally    tally

	wrong    int
	instants int
	counted  int // calls, when whose doing they are was last compared
	ticked   time.Duration
}

func newRun(t *testing.T, seed uint64, p strikes.Policy) *run {
	t.Helper()
	r := &run{t: t, seed: seed, started: time.Now(), sequence: newSequence(seed)}
	var providerOf []int
	for _, s := range r.sequence.services {
		providerOf = append(providerOf, s.provider)
	}
	r.memory = newMemory(p, providerOf)
	r.patterns = newPatterns(providerOf)
	r.oracle = newOracle(len(providerOf), func() []*trip { return r.memory.guard.trips })
	return r
}

// wrongMax is how many faults a run tells of before it gives up.
const wrongMax = 5

func (r *run) errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf(format+"; MARKET_SIM_SEED=%d", append(args, r.seed)...)
	if r.wrong++; r.wrong >= wrongMax {
		r.t.Fatalf("and more; MARKET_SIM_SEED=%d", r.seed)
	}
}

// sayEach is after how many calls a run beside a database says how far it is.
const sayEach = 50_000

// until runs until so many calls have been recorded, beside a database where there is one.
func (r *run) until(n int, beside *database) {
	r.t.Helper()
	next := sayEach
	for r.sequence.recorded < n {
		if beside != nil && r.sequence.recorded >= next {
			r.t.Logf("%d calls after %s, %s of market time", r.sequence.recorded, time.Since(r.started).Round(time.Second), r.sequence.now.Round(time.Minute))
			next += sayEach
		}
		since := r.sequence.now
		due := r.sequence.advance()
		if over := r.sequence.recorded - n; over > 0 {
			due, r.sequence.recorded = due[:len(due)-over], n
		}
		now := r.sequence.now
		if beside != nil {
			beside.instant(now)
		}
		for len(due) > 0 {
			together := 1
			for together < len(due) && late(due[together]) == 0 {
				together++
			}
			r.record(due[:together], beside)
			due = due[together:]
		}
		r.tick(now, beside)
		r.sequence.ask(r.memory, since)
	}
}

// tickEach is how often a replica looks for outages of ours.
const tickEach = time.Second

// tick is the look of every replica. Where memory knows that they have nothing to see, one of them looks all the same, now and then.
func (r *run) tick(now time.Duration, beside *database) {
	r.t.Helper()
	r.instants++
	if beside != nil && r.instants%everyInstants == 0 {
		r.compareAll(beside)
	}
	if now < r.ticked+tickEach {
		return
	}
	r.ticked = now
	c, trips := &r.sequence.conditions, len(r.memory.guard.trips)
	quiet := r.memory.guard.quiet(c, now)
	if !quiet {
		r.memory.tick(c, now)
		r.oracle.reconsider(now)
		r.judgeEnds(now)
	}
	switch {
	case beside == nil:
	case !quiet:
		beside.tick(c, now, 0, replicas)
	case r.instants%quietEach == 0:
		one := r.instants / quietEach % replicas
		beside.tick(c, now, one, one+1)
	}
	if len(r.memory.guard.trips) == trips {
		return
	}
	r.judgeTrips(trips)
	if beside != nil {
		r.compareAll(beside)
	}
}

// record lets everybody see calls, of which none changes what another one means.
func (r *run) record(ends []end, beside *database) {
	r.t.Helper()
	for _, e := range ends {
		before := r.memory.sight(e.service)
		effect := r.memory.record(e)
		after := r.memory.sight(e.service)
		r.tally.count(r.sequence.services[e.service].class, e, effect, before, after)
		r.patterns.see(e, r.sequence.outages)
		r.oracle.see(e)
		r.judge(e, before, after)
	}
	if beside != nil {
		r.compare(ends, beside)
	}
}

func describe(e end) string {
	asked := "not asked"
	if e.wasAsked() {
		asked = fmt.Sprintf("asked %s", e.asked)
	}
	return fmt.Sprintf("%s of %s, %s, recorded %s, by replica %d, from %s %s, wait %s: %s",
		e.reason, slug(e.service), asked, e.at, e.replica, e.caller.origin(), e.source, e.wait, e.truth)
}

// judge compares what a call made of a service with what it has to.
func (r *run) judge(e end, before, after sight) {
	r.t.Helper()
	// A failure of ours that looks like the service's counts until the outage is known. Whether it is taken back then is judged in its turn.
	looksOwn := e.truth == ownFault || looksOwn(e)
	if proves := after.Strikes > before.Strikes || after.Evidence > before.Evidence; proves && !(looksOwn && e.caller.outside()) {
		r.errorf("call %d (%s) is evidence, and must not be", e.n, describe(e))
	}
	if after.Cleared > before.Cleared && !(e.truth == delivered && e.caller.outside()) {
		r.errorf("call %d (%s) clears, and must not", e.n, describe(e))
	}
	if after.Until > before.Until && !((looksOwn || e.truth == flagged) && e.caller.outside()) {
		r.errorf("call %d (%s) begins a rest, and must not", e.n, describe(e))
	}
	if e.truth != delivered || before.Counting > 0 || after.Counting > 0 {
		if want := r.oracle.count(e.service, e.at); after.Counting != want {
			r.errorf("after call %d (%s) %d strikes count, and %d incidents stand", e.n, describe(e), after.Counting, want)
		}
	}
	left, want := r.memory.records[e.service].left, r.oracle.expected[e.service]
	leaves := len(left) > 0 && left[0].n == e.n
	switch {
	case !leaves && want == e.n:
		r.errorf("with call %d (%s) the service has to leave the shelf, and does not", e.n, describe(e))
	case leaves && want != e.n:
		r.errorf("with call %d (%s) the service leaves the shelf, and must not", e.n, describe(e))
	}
}

// settle judges the market at the end of a run.
func (r *run) settle() {
	r.t.Helper()
	r.judgeMissed()
	for i, rec := range r.memory.records {
		want := r.oracle.expected[i]
		if rec.state.Sells() == (want > 0) {
			r.errorf("%s (%s) is %s in the end, and has to be off the shelf: %v", slug(i), r.sequence.services[i].class, rec.state, want > 0)
		}
		if foreign := rec.foreign(); foreign != "" {
			r.errorf("%s (%s) is %s, and one of its strikes is not its own doing: %s", slug(i), r.sequence.services[i].class, rec.state, foreign)
		}
	}
}

// foreign describes a strike without a single failure of the service's own doing, among those that took it off the shelf; empty: there is none.
func (r *record) foreign() string {
	if len(r.left) == 0 {
		return ""
	}
	for _, s := range r.left[0].strikes {
		own := false
		var all []string
		for _, f := range s.evidence {
			own = own || f.truth == ownFault && f.caller.outside()
			all = append(all, describe(f.end))
		}
		if !own {
			return strings.Join(all, ", ")
		}
	}
	return ""
}
