package simtest

import (
	"time"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/cooldown"
	"market/internal/outage"
	"market/internal/strikes"
)

// The settings that a market has where nobody sets anything.
const rest = time.Minute

var usual = strikes.Policy{Limit: 3, Window: 24 * time.Hour, Fold: rest}

// midnight is the market time at which a run begins. Package pgtest stops the clock of a database there.
var midnight = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// strikeState is what became of a strike.
type strikeState int

const (
	_ strikeState = iota
	open
	cleared
	voided
)

// Evidence is one failure of a strike.
type evidence struct {
	asked, at time.Duration
	replica   int
	truth     doing
	outside   bool
}

// A strike is one as the table has it.
type strike struct {
	opened, folds time.Duration
	last          time.Duration // evidence
	state         strikeState
	evidence      []evidence
}

// A record is what a market has of one service.
type record struct {
	state   catalog.State
	until   time.Duration // of its rest; it never rested: 0
	opened  int           // strikes, ever
	cleared int
	voided  int
	// strikes are those that are open, and the latest.
	strikes []*strike
	// delisted is how it left the shelf; nil: it did not, or that was undone.
	delisted *delisting
	undone   int // delistings
}

// A delisting is one, with the strikes that counted.
type delisting struct {
	at      time.Duration
	n       int // of the call that decided
	strikes []*strike
}

// Sight is what can be seen of a service after a call: the verdicts.
type sight struct {
	State    catalog.State
	Until    time.Duration
	Strikes  int // ever
	Cleared  int
	Voided   int
	Counting int           // open ones within the window
	Opened   time.Duration // the latest strike
	Last     time.Duration // its newest evidence
	Evidence int           // how much it has
}

// memory is a market of policies and of tables as small as they can be.
type memory struct {
	policy  strikes.Policy
	now     time.Duration
	records []*record
	guard   *guard
}

func newMemory(p strikes.Policy, providerOf []int) *memory {
	m := &memory{policy: p, guard: newGuard(providerOf)}
	for range providerOf {
		m.records = append(m.records, &record{state: catalog.Listed})
	}
	return m
}

func (m *memory) standing(service int, now time.Duration) (sells, rests bool) {
	r := m.records[service]
	return r.state.Sells(), r.until > now
}

// record does with a call what the recorder does, and says what it made of it.
func (m *memory) record(e end) strikes.Effect {
	m.now = e.at
	row := e.row()
	if refusedBefore(row) {
		return strikes.None // it is counted, or gets a row of its own; nothing of the service is touched
	}
	m.guard.heard(e)
	party := row.Party
	if enforced(row, e) && m.guard.excuses(e) {
		party = call.Platform
	}
	r := m.records[e.service]
	if still := cooldown.After(row.Outcome, party, row.Reason, e.caller.origin(), e.wait, rest); still > 0 && r.until <= e.at {
		r.until = e.at + still
	}
	effect := strikes.EffectOf(row.Outcome, party, row.Reason, e.caller.origin())
	switch effect {
	case strikes.Increment:
		m.add(r, e)
	case strikes.Clear:
		r.clear(e)
	case strikes.None:
	}
	return effect
}

// refusedBefore says whether a refusal goes by the recorder's other door, which counts refusals and looks at nothing else.
func refusedBefore(row call.Row) bool {
	switch row.Reason {
	case call.InputInvalid, call.InputEmpty, call.InputTooLarge, call.NotReady, call.Released, call.NotLive, call.OverCapacity:
		return true
	}
	return false
}

// enforced says whether a call comes to where failures are enforced.
func enforced(row call.Row, e end) bool {
	return strikes.EffectOf(row.Outcome, row.Party, row.Reason, e.caller.origin()) == strikes.Increment ||
		cooldown.After(row.Outcome, row.Party, row.Reason, e.caller.origin(), e.wait, rest) > 0
}

// add is the evidence of a failure: it joins the latest strike, or opens another.
func (m *memory) add(r *record, e end) {
	proof := evidence{e.asked, e.at, e.replica, e.truth, e.caller.outside()}
	if n := len(r.strikes); n > 0 {
		if latest := r.strikes[n-1]; m.policy.Fold > 0 && latest.folds > e.asked {
			latest.last = e.at
			latest.evidence = append(latest.evidence, proof)
			return
		}
		if r.strikes[n-1].state != open {
			r.strikes = r.strikes[:n-1] // nothing joins it any more
		}
	}
	r.opened++
	opened := &strike{opened: e.at, folds: e.at + m.policy.Fold, last: e.at, state: open, evidence: []evidence{proof}}
	r.strikes = append(r.strikes, opened)
	counting := r.counting(e.at, m.policy.Window)
	if m.policy.Delists(len(counting)) && r.state == catalog.Listed {
		r.state = catalog.Delisted
		r.delisted = &delisting{at: e.at, n: e.n, strikes: counting}
	}
}

// clear is what a success does: strikes whose last evidence was recorded before it was asked are over.
func (r *record) clear(e end) {
	left := r.strikes[:0]
	for i, s := range r.strikes {
		if s.state == open && s.last < e.asked {
			s.state = cleared
			r.cleared++
		}
		if s.state == open || i == len(r.strikes)-1 {
			left = append(left, s)
		}
	}
	r.strikes = left
}

// counting returns the open strikes within the window.
func (r *record) counting(now, window time.Duration) []*strike {
	var all []*strike
	for _, s := range r.strikes {
		if s.state == open && s.opened > now-window {
			all = append(all, s)
		}
	}
	return all
}

func (m *memory) sight(service int) sight {
	r := m.records[service]
	s := sight{State: r.state, Until: r.until, Strikes: r.opened, Cleared: r.cleared, Voided: r.voided,
		Counting: len(r.counting(m.now, m.policy.Window))}
	if n := len(r.strikes); n > 0 {
		s.Opened, s.Last, s.Evidence = r.strikes[n-1].opened, r.strikes[n-1].last, len(r.strikes[n-1].evidence)
	}
	return s
}

// moment is a time of the run as the market writes it.
func moment(d time.Duration) time.Time { return midnight.Add(d) }

// tick is what every replica does each second: it looks whether an outage begins, goes on, or is over, and excuses what one reaches back to.
func (m *memory) tick(c *conditions, now time.Duration) {
	m.now = now
	for _, scope := range m.guard.tick(c, now) {
		m.reexamine(scope.replica, scope.state)
	}
}

// reexamine voids the strikes of which all the evidence is excused by an outage. A delisting that they made is undone where too few are left.
func (m *memory) reexamine(replica int, state outage.State) {
	for _, r := range m.records {
		left := r.strikes[:0]
		for i, s := range r.strikes {
			if s.state == open && s.excused(replica, state) {
				s.state = voided
				r.voided++
			}
			if s.state == open || i == len(r.strikes)-1 {
				left = append(left, s)
			}
		}
		r.strikes = left
		m.restore(r)
	}
}

func (s *strike) excused(replica int, state outage.State) bool {
	for _, e := range s.evidence {
		if replica != fleet && e.replica != replica || !state.Excuses(moment(e.asked), moment(e.at)) {
			return false
		}
	}
	return true
}

// restore undoes a delisting of which too few strikes are left.
func (m *memory) restore(r *record) {
	if r.delisted == nil {
		return
	}
	left := 0
	for _, s := range r.delisted.strikes {
		if s.state != voided {
			left++
		}
	}
	if !m.policy.Delists(left) {
		r.undone++
		r.state, r.delisted = catalog.Listed, nil
	}
}
