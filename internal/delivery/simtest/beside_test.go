package simtest

import (
	"fmt"
	"strings"

	"market/internal/catalog"
)

// everyInstants is after how many instants every service is compared, and not only those that were called.
const everyInstants = 500

// quietEach is after how many instants a replica looks that has nothing to see.
const quietEach = 10

// compare records calls in the database, and looks whether it comes to the verdicts of memory. In a run longer than the prefix, services that never
// got a strike nor a rest are not looked at after each call, but with all the others.
func (r *run) compare(ends []end, beside *database) {
	r.t.Helper()
	beside.record(ends)
	var of []int
	for _, e := range ends {
		if r.sequence.recorded <= prefix || r.memory.sight(e.service) != (sight{State: catalog.Listed}) {
			of = append(of, e.service)
		}
	}
	if len(of) == 0 {
		return
	}
	for i, got := range beside.sights(of) {
		if want := r.memory.sight(of[i]); got != want {
			r.differs(of[i], got, want, fmt.Sprintf("call %d or one beside it, the last %s", ends[0].n, describe(ends[len(ends)-1])))
		}
	}
}

// compareAll looks at every service, and at the outages.
func (r *run) compareAll(beside *database) {
	r.t.Helper()
	all := make([]int, len(r.memory.records))
	for i := range all {
		all[i] = i
	}
	for i, got := range beside.sights(all) {
		if want := r.memory.sight(i); got != want {
			r.differs(i, got, want, "what every replica looked at")
		}
	}
	r.compareLedgers(beside)
	seen := beside.outages()
	for i := range max(len(seen), len(r.memory.guard.trips)) {
		var got, want trip
		if i < len(seen) {
			got = seen[i]
		}
		if i < len(r.memory.guard.trips) {
			want = *r.memory.guard.trips[i]
			want.settled = false
		}
		if got != want {
			r.t.Fatalf("at %s outage %d is %+v in the database, and in memory %+v; MARKET_SIM_SEED=%d", r.sequence.now, i+1, got, want, r.seed)
		}
	}
}

// compareLedgers looks whose doing all calls are said to be. In a run longer than the prefix that is seldom: every call is read for it.
func (r *run) compareLedgers(beside *database) {
	r.t.Helper()
	if r.sequence.recorded > prefix && r.sequence.recorded < r.counted+sayEach {
		return
	}
	r.counted = r.sequence.recorded
	for i, got := range beside.ledgers() {
		if want := r.memory.records[i].ledger; got != want {
			r.t.Fatalf("at %s of the calls of %s are in the database %+v, and in memory %+v; MARKET_SIM_SEED=%d", r.sequence.now, slug(i), got, want, r.seed)
		}
	}
}

// differs ends the run at the first difference, with what led to it.
func (r *run) differs(service int, got, want sight, after string) {
	r.t.Helper()
	var history strings.Builder
	for _, s := range r.memory.records[service].strikes {
		fmt.Fprintf(&history, "strike of %s, folds until %s, %s\n", s.opened, s.folds, s.state)
		for _, f := range s.evidence {
			fmt.Fprintf(&history, "  %s; excused since: %v\n", describe(f.end), f.excused)
		}
	}
	for _, t := range r.memory.guard.trips {
		fmt.Fprintf(&history, "outage of %s by %s from %s, excuses from %s, until %s\n", scopeName(t.replica), t.state.Cause,
			t.state.Began.Sub(beginning), t.state.Reaches.Sub(beginning), t.state.Ended.Sub(beginning))
	}
	r.t.Fatalf("at %s, after %s:\nin the database %s is %+v\nin memory         it is %+v\n%sMARKET_SIM_SEED=%d", r.sequence.now, after, slug(service), got, want, &history, r.seed)
}
