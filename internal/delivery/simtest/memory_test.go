package simtest

import (
	"net/netip"
	"time"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/cooldown"
	"market/internal/strikes"
)

// The settings that a market has where nobody sets anything.
const rest = time.Minute

var usual = strikes.Policy{Limit: 3, Window: 24 * time.Hour, Fold: rest, Sources: 1}

// beginning is the market time of the first call. Package pgtest stops the clock of a database there.
var beginning = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// moment is a time of a run as the market writes it.
func moment(d time.Duration) time.Time { return beginning.Add(d) }

// A failure is evidence of a strike.
type failure struct {
	end
	excused bool
}

// A strike is one as the tables have it.
type strike struct {
	opened, folds time.Duration
	last          time.Duration // evidence
	state         strikes.State
	clearedAt     time.Duration
	evidence      []*failure
}

// A record is what a market has of one service.
type record struct {
	state   catalog.State
	until   time.Duration // of its rest
	needs   []need        // the failures that fell into it, the one that started it first
	strikes []*strike     // all, in the order of opening
	open    int           // of these
	cleared int
	voided  int
	left    []*departure // times that strikes took it off the shelf since it was last on it, the newest last
	undone  int          // departures that were taken back
	ledger  ledger
}

// A need is a failure that a service rests for.
type need struct {
	*failure
	of *strike // nil: it is evidence of none
}

// A departure is one time that strikes took a service off the shelf.
type departure struct {
	at       time.Duration
	n        int // of the call that decided
	from, to catalog.State
	strikes  []*strike // that counted
}

// A sight is what can be seen of a service: the verdicts on its calls so far.
type sight struct {
	State    catalog.State
	Until    time.Duration
	Strikes  int // ever
	Cleared  int
	Voided   int
	Counting int           // open ones within the window
	Opened   time.Duration // the latest strike
	Folds    time.Duration // until when it does
	Last     time.Duration // its newest evidence
	Evidence int           // how much it has
}

// memory is a market of policies, over tables that are as small as they can be.
type memory struct {
	policy  strikes.Policy
	now     time.Duration
	records []*record
	guard   *guard
	excused int   // failures, when they were recorded
	blamed  []end // failures that are taken for the services' own, the newest last, as far back as an outage may reach that is seen yet
}

// A ledger counts the calls of one service as they are written, without those that were refused: of these some are only counted.
type ledger struct {
	Calls, Ours, Excused int // all; those whose party is the platform; those of them that an outage made so
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

// record does with a call what the recorder does, and says what it was to the strikes of its service.
func (m *memory) record(e end) strikes.Effect {
	m.now = e.at
	row, from := e.row, e.caller.origin()
	if refusedBefore(row.Reason) {
		return strikes.None
	}
	m.guard.hear(e)
	party := row.Party
	if row.Outcome == call.Failed && party == call.Service && e.wasAsked() && from.Counts() && m.guard.excuses(e) {
		party = call.Platform
		m.excused++
		m.records[e.service].ledger.Excused++
	} else if row.Outcome == call.Failed && party == call.Service && e.wasAsked() && from.Counts() {
		m.blamed = append(m.blamed, e)
	}
	if row.Outcome != call.Refused {
		m.records[e.service].ledger.Calls++
		if party == call.Platform {
			m.records[e.service].ledger.Ours++
		}
	}
	r, effect := m.records[e.service], strikes.EffectOf(row.Outcome, party, row.Reason, from)
	var proof *strike
	opened := false
	switch effect {
	case strikes.Increment:
		proof, opened = r.add(e, m.policy.Fold)
	case strikes.Clear:
		r.clear(e)
	case strikes.None:
	}
	if still := cooldown.After(row.Outcome, party, row.Reason, from, e.wait, rest); still > 0 {
		r.rest(e, still, proof)
	}
	if proof != nil && (opened || m.policy.Sources > 1) {
		m.judge(r, e)
	}
	return effect
}

// rest starts a rest, or falls into one.
func (r *record) rest(e end, still time.Duration, of *strike) {
	if r.until <= e.at {
		r.until, r.needs = e.at+still, nil
	}
	f := &failure{end: e}
	if of != nil {
		f = of.evidence[len(of.evidence)-1]
	}
	r.needs = append(r.needs, need{f, of})
}

// refusedBefore says whether a call ends by the recorder's other door, which counts refusals and looks at nothing else.
func refusedBefore(r call.Reason) bool {
	switch r {
	case call.InputInvalid, call.InputEmpty, call.InputTooLarge, call.NotReady, call.Released, call.NotLive, call.OverCapacity:
		return true
	}
	return false
}

// add keeps a failure as evidence: of the latest strike while that folds, or of a new one.
func (r *record) add(e end, fold time.Duration) (s *strike, opened bool) {
	if n := len(r.strikes); n > 0 && fold > 0 && r.strikes[n-1].folds > e.asked {
		s = r.strikes[n-1]
	} else {
		s = &strike{opened: e.at, folds: e.at + fold, state: strikes.Open}
		r.strikes = append(r.strikes, s)
		r.open++
		opened = true
	}
	s.last = e.at
	s.evidence = append(s.evidence, &failure{end: e})
	return s, opened
}

// judge does what the strikes of a service mean.
func (m *memory) judge(r *record, e end) {
	counting := r.counting(e.at, m.policy.Window)
	to := map[strikes.Verdict]catalog.State{strikes.Holds: catalog.Held, strikes.Delists: catalog.Delisted}[m.policy.Verdict(len(counting), sourcesOf(counting))]
	if to == "" || r.state == to || r.state == catalog.Delisted {
		return
	}
	r.left = append(r.left, &departure{at: e.at, n: e.n, from: r.state, to: to, strikes: counting})
	r.state = to
}

// sourcesOf counts the networks that evidence comes from which no outage excuses.
func sourcesOf(counting []*strike) int {
	networks := map[netip.Prefix]bool{}
	for _, s := range counting {
		for _, f := range s.evidence {
			if f.excused {
				continue
			}
			networks[netip.PrefixFrom(f.source, 24).Masked()] = true
		}
	}
	return len(networks)
}

// clear is what a success does: strikes whose last evidence was recorded before it was asked are over.
func (r *record) clear(e end) {
	if r.open == 0 {
		return
	}
	for _, s := range r.strikes {
		if s.state == strikes.Open && s.last < e.asked {
			s.state, s.clearedAt = strikes.Cleared, e.at
			r.open--
			r.cleared++
		}
	}
}

// counting returns the open strikes within the window.
func (r *record) counting(now, window time.Duration) []*strike {
	var all []*strike
	for i := len(r.strikes) - 1; r.open > 0 && i >= 0 && r.strikes[i].opened > now-window; i-- {
		if r.strikes[i].state == strikes.Open {
			all = append(all, r.strikes[i])
		}
	}
	return all
}

func (m *memory) sight(service int) sight {
	r := m.records[service]
	s := sight{State: r.state, Until: r.until, Strikes: len(r.strikes), Cleared: r.cleared, Voided: r.voided,
		Counting: len(r.counting(m.now, m.policy.Window))}
	if n := len(r.strikes); n > 0 {
		latest := r.strikes[n-1]
		s.Opened, s.Folds, s.Last, s.Evidence = latest.opened, latest.folds, latest.last, len(latest.evidence)
	}
	return s
}
