package simtest

import (
	"slices"
	"time"

	"market/internal/catalog"
	"market/internal/strikes"
)

// tick is what every replica does each second, one after another: it looks whether an outage begins, goes on or is over, and takes back what was
// done before one was known.
func (m *memory) tick(c *conditions, now time.Duration) {
	m.now = now
	for replica := range replicas {
		m.guard.step(c, now, replica)
		for _, t := range m.guard.unsettled() {
			m.excuse(t)
			t.settled = !t.state.Holds() && !t.state.Ended.After(moment(now-time.Minute))
		}
	}
}

// blamedFor is longer than any outage of these runs, with all that it reaches back.
const blamedFor = 2 * time.Hour

// relieve makes the failures ours that an outage reaches back to, whether they are evidence or not.
func (m *memory) relieve(t *trip) {
	old := 0
	for old < len(m.blamed) && m.blamed[old].at < m.now-blamedFor {
		old++
	}
	still := m.blamed[:0]
	for _, e := range m.blamed[old:] {
		if !t.covers(e) {
			still = append(still, e)
			continue
		}
		l := &m.records[e.service].ledger
		l.Ours++
		l.Excused++
	}
	m.blamed = still
}

// excuse excuses the evidence that an outage reaches back to, voids the strikes that have no other, and counts again where they have.
func (m *memory) excuse(t *trip) {
	m.relieve(t)
	for _, r := range m.records {
		var shaken, groundless []*strike
		for _, s := range r.strikes[r.since(t.reaches()-time.Hour):] {
			some, all := false, true
			for _, f := range s.evidence {
				f.excused = f.excused || t.covers(f.end)
				some = some || t.covers(f.end)
				all = all && f.excused
			}
			switch {
			case some && all:
				groundless = append(groundless, s)
			case some:
				shaken = append(shaken, s)
			}
		}
		for _, n := range r.needs {
			n.excused = n.excused || t.covers(n.end)
		}
		for _, s := range groundless {
			if s.state == strikes.Open || s.state == strikes.Cleared && !r.state.Sells() {
				m.void(r, s)
			}
		}
		if len(shaken) > 0 {
			m.reconsider(r)
		}
		m.endRest(r)
	}
}

// endRest ends the rest of a service that only excused failures began and kept up, whether they were evidence or only flagged.
func (m *memory) endRest(r *record) {
	if r.until > m.now && len(r.needs) > 0 && !slices.ContainsFunc(r.needs, func(n need) bool { return !n.excused }) {
		r.until = m.now
	}
}

// since is the place of the first strike that is not older.
func (r *record) since(t time.Duration) int {
	i := len(r.strikes)
	for i > 0 && r.strikes[i-1].opened >= t {
		i--
	}
	return i
}

// void makes a strike one that never counted, and takes back what followed from it.
func (m *memory) void(r *record, s *strike) {
	if s.state == strikes.Cleared {
		r.cleared--
	} else {
		r.open--
	}
	s.state, s.folds = strikes.Voided, min(s.folds, m.now)
	r.voided++
	if r.until > m.now && !slices.ContainsFunc(r.needs, func(n need) bool { return !n.excused && (n.of == nil || n.of.state != strikes.Voided) }) {
		r.until = m.now
	}
	m.reconsider(r)
}

// reconsider puts a service back where it belongs.
func (m *memory) reconsider(r *record) {
	if len(r.left) == 0 {
		return
	}
	if to := m.belongs(r); to != r.state {
		r.state = to
		if to == catalog.Listed {
			r.undone += len(r.left)
			r.left = nil
		}
	}
}

// belongs says in which state a service belongs by the strikes that still count.
func (m *memory) belongs(r *record) catalog.State {
	back := r.state
	for i := len(r.left) - 1; i >= 0; i-- {
		d := r.left[i]
		switch verdict := m.gravest(r, d.at); {
		case verdict == strikes.Delists && d.to == catalog.Delisted:
			return catalog.Delisted
		case verdict != strikes.Stays:
			return catalog.Held
		case d.from != catalog.Held:
			return d.from
		}
		back = d.from
	}
	return back
}

// gravest is the worst that the strikes of a service meant at a moment, and whenever another one opened later.
func (m *memory) gravest(r *record, at time.Duration) strikes.Verdict {
	worst := m.verdictAt(r, at)
	for _, s := range r.strikes {
		if s.opened > at && s.state != strikes.Voided {
			worst = max(worst, m.verdictAt(r, s.opened))
		}
	}
	return worst
}

func (m *memory) verdictAt(r *record, at time.Duration) strikes.Verdict {
	var counted []*strike
	for _, s := range r.strikes {
		open := s.state == strikes.Open || s.state == strikes.Cleared && s.clearedAt > at
		if open && s.opened <= at && s.opened > at-m.policy.Window {
			counted = append(counted, s.until(at))
		}
	}
	return m.policy.Verdict(len(counted), sourcesOf(counted))
}

// until is the strike with the evidence that it had at a moment.
func (s *strike) until(at time.Duration) *strike {
	then := &strike{}
	for _, f := range s.evidence {
		if f.at <= at {
			then.evidence = append(then.evidence, f)
		}
	}
	return then
}
