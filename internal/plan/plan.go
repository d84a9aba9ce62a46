package plan

import (
	"math"
	"slices"
	"time"
)

// Limits are what a plan promises, and what holds.
type Limits struct {
	Listings         int // of an account that are not retired
	Endpoints        int // of one listing, on the shelf
	TrialCallsPerDay int // that an endpoint may offer
	// ProbeEvery is how often a listing is asked whether it lives while nobody calls it.
	ProbeEvery time.Duration
	FeeBPS     int // of a call's price, pinned when its payment is claimed
	// Priority orders new calls when little of a source is left for the day: the higher is let in for longer.
	Priority        int
	AnswerRetention time.Duration // how long a served answer can be fetched again
	// PayoutThreshold is from how many US cents on an account is paid out by itself.
	PayoutThreshold int
}

// A Plan is what accounts have by name.
type Plan struct {
	Name  string // lower case; what an account's row keeps
	Title string // for people
	Limits
}

// A Table has the plans in order: the first is what an account begins with, and no later one is worse in anything.
type Table []Plan

// BuiltIn is the table that holds where the operator has made none: its first plan has the fee and the retention of the configuration.
func BuiltIn(feeBPS int, retention time.Duration) Table {
	return Table{
		{"free", "Free", Limits{Listings: 3, Endpoints: 10, TrialCallsPerDay: 100, ProbeEvery: time.Hour, FeeBPS: feeBPS, Priority: 1, AnswerRetention: retention,
			PayoutThreshold: 1_000}},
		{"pro", "Pro", Limits{Listings: 20, Endpoints: 50, TrialCallsPerDay: 1_000, ProbeEvery: 15 * time.Minute, FeeBPS: feeBPS * 3 / 5, Priority: 2,
			AnswerRetention: max(retention, 72*time.Hour), PayoutThreshold: 500}},
		{"scale", "Scale", Limits{Listings: 200, Endpoints: 100, TrialCallsPerDay: 10_000, ProbeEvery: 5 * time.Minute, FeeBPS: feeBPS * 2 / 5, Priority: 3,
			AnswerRetention: max(retention, 168*time.Hour), PayoutThreshold: 100}},
	}
}

// Of returns the plan of a name. No name, and one that the table does not have (any more), is the first plan.
func (t Table) Of(name string) Plan {
	if i := t.index(name); i >= 0 {
		return t[i]
	}
	if len(t) == 0 {
		return Plan{}
	}
	return t[0]
}

// Has says whether the table has a plan of that name. An account without a name has the first plan and needs none.
func (t Table) Has(name string) bool { return t.index(name) >= 0 }

func (t Table) index(name string) int {
	return slices.IndexFunc(t, func(p Plan) bool { return p.Name == name })
}

// Names are the names of the plans, in order.
func (t Table) Names() []string {
	names := make([]string, len(t))
	for i, p := range t {
		names[i] = p.Name
	}
	return names
}

// Next returns the plan after the one that a name stands for; false where that is the last.
func (t Table) Next(name string) (Plan, bool) {
	i := max(0, t.index(name)) + 1
	if i >= len(t) {
		return Plan{}, false
	}
	return t[i], true
}

// Larger returns the next plan that allows more of a limit; false where none does.
func (t Table) Larger(name string, key Key) (Plan, bool) {
	field, now := key.Field(), t.Of(name)
	for p, found := t.Next(name); found; p, found = t.Next(p.Name) {
		if field.Better(p.Limits, now.Limits) {
			return p, true
		}
	}
	return Plan{}, false
}

// Rank is where a priority stands among those of the table, 0 for the lowest, and how many there are.
func (t Table) Rank(priority int) (rank, of int) {
	var all []int
	for _, p := range t {
		all = append(all, p.Priority)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	at, _ := slices.BinarySearch(all, priority)
	return min(at, max(0, len(all)-1)), len(all)
}

// Terms are the plans of accounts, and what holds for listings that belong to none of them.
type Terms struct {
	Table   Table
	Unowned Limits
}

// NewTerms says what holds where nobody's plan does: the fee and the retention of the configuration, rounds of an hour, and no other limit.
func NewTerms(table Table, feeBPS int, retention time.Duration) Terms {
	own := Limits{
		Listings: math.MaxInt, Endpoints: math.MaxInt, TrialCallsPerDay: math.MaxInt, ProbeEvery: probeEveryMax, FeeBPS: feeBPS, AnswerRetention: retention,
	}
	for _, p := range table {
		own.Priority = max(own.Priority, p.Priority)
	}
	return Terms{Table: table, Unowned: own}
}

// Of is what holds for a listing: the plan of its owner, by name, where it has one.
func (t Terms) Of(owned bool, name string) Limits {
	if !owned {
		return t.Unowned
	}
	return t.Table.Of(name).Limits
}

// TrialCalls is how many trial calls of a day an endpoint gives that offers so many: never more than its owner's plan has now.
func (l Limits) TrialCalls(offered int) int { return min(offered, l.TrialCallsPerDay) }
