package simtest

import (
	"fmt"
	"strings"
)

// everyInstants is after how many instants every service is compared, and not only those that were called.
const everyInstants = 500

// quietEach is after how many instants a replica looks that has nothing to see.
const quietEach = 10

// compare looks whether the database has come to the verdicts of memory on calls that were just recorded.
func (r *run) compare(ends []end, beside *database) {
	r.t.Helper()
	for i, got := range beside.record(ends) {
		if want := r.memory.sight(ends[i].service); got != want {
			r.differs(ends[i].service, got, want, "call "+describe(ends[i]))
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
			r.t.Fatalf("at %s outage %d is %+v in the database, and in memory %+v; SEED=%d", r.sequence.now, i+1, got, want, r.seed)
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
	r.t.Fatalf("at %s, after %s:\nin the database %s is %+v\nin memory         it is %+v\n%sSEED=%d", r.sequence.now, after, slug(service), got, want, &history, r.seed)
}
