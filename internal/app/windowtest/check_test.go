package windowtest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/delivery"
)

// slack is what instants lose that are cut to milliseconds.
const slack = 2 * time.Millisecond

// holds checks what is true of every run, whatever happened in it: what was shown since the last proof of anybody is never above the budget, nobody
// shows anything before it was answered itself, and every replica judges the age of its proofs as it says that it does.
func (f *fleet) holds(t testing.TB) {
	t.Helper()
	seen := f.authority.sight()
	if seen.most > budget*dollar {
		t.Errorf("%s USD were shown to the facilitator since the last proof, of %d that may be lost", usd(seen.most), budget)
	}
	for _, one := range seen.all {
		if first, answered := seen.first[one.replica]; !answered || one.at.Before(first) {
			t.Errorf("replica %s showed a payment before the facilitator had answered it: nobody inherits the result of another", one.replica)
		}
	}
	for _, m := range f.everybody() {
		looks, _ := m.seen()
		for _, l := range looks {
			m.judges(t, l)
		}
	}
	figures, err := delivery.PromiseOne(t.Context(), f.DB)
	if err != nil {
		t.Fatal(err)
	}
	if !figures.Balanced() {
		t.Errorf("promise one is broken: %v", figures)
	}
}

// judges holds one answer of /readyz against itself: who admits has proofs within the allowance, and nobody withdraws because of an age that is within it.
func (m *member) judges(t testing.TB, l look) {
	t.Helper()
	age, proved := l.age()
	switch {
	case l.admits() && (!proved || age > l.AllowanceMS):
		t.Errorf("replica %s admits with proofs of %d ms (%t) and an allowance of %d ms", m.name, age, proved, l.AllowanceMS)
	case l.State == stateNotReady && isTooOld(l.standing) && proved && age < l.AllowanceMS:
		t.Errorf("replica %s withdraws (%s) with proofs of %d ms and an allowance of %d ms", m.name, l.Why, age, l.AllowanceMS)
	case (l.admits() && !l.stopping) != (l.status == http.StatusOK):
		t.Errorf("replica %s is %s and answers %d", m.name, l.State, l.status)
	}
}

// A withdrawal is how one replica stopped.
type withdrawal struct {
	after time.Duration // its last proof, when the question of it came, until it was first seen to admit nothing
	units uint64        // it showed meanwhile
	late  int           // requests that came after its allowance had ended, all of them refused
}

// withdrawn checks one replica against an outage that is still on: whatever was sent to it once its last proof was as old as it may get was refused, and
// nothing of that was shown to the facilitator. What is asked before that may be admitted.
func (f *fleet) withdrawn(t testing.TB, m *member, allowed time.Duration) (w withdrawal) {
	t.Helper()
	seen := f.authority.sight()
	proof := seen.good[m.name]
	end := proof.Add(allowed + slack)
	looks, replies := m.seen()
	for _, l := range looks {
		if l.sent.Before(proof) {
			continue
		}
		switch {
		case l.admits():
			w.after = 0 // what it said before it had read its last proof is of an outage before
		case l.State == stateNotReady && w.after == 0:
			w.after = l.sent.Sub(proof)
		}
		if !l.sent.Before(end) && l.admits() {
			t.Errorf("replica %s says that it is %s %s after its last proof, of %s", m.name, l.State, l.sent.Sub(proof), allowed)
		}
	}
	for _, r := range replies {
		if r.sent.Before(end) || r.status == 0 {
			continue
		}
		w.late++
		if r.status != http.StatusServiceUnavailable || r.code != string(call.NotReady) {
			t.Errorf("replica %s answers %d %s %s after its last proof, of %s", m.name, r.status, r.code, r.sent.Sub(proof), allowed)
		}
	}
	for _, one := range seen.all {
		if at := f.sentAt(one.nonce); one.replica == m.name && !at.Before(end) {
			t.Errorf("replica %s showed a payment that was sent %s after its last proof, of %s", m.name, at.Sub(proof), allowed)
		}
	}
	w.units = seen.units(m.name, proof)
	return w
}

// stopped waits until every replica has said that it admits nothing, and until it has turned somebody away after that.
func (f *fleet) stopped(t testing.TB, members []*member, allowed time.Duration) {
	t.Helper()
	for _, m := range members {
		apptest.Eventually(t, "replica "+m.name+" stops and turns payments away", func() bool {
			if m.last().admits() {
				return false
			}
			end := f.authority.sight().good[m.name].Add(allowed + slack)
			_, replies := m.seen()
			away := 0
			for _, r := range replies {
				if r.paid != nil && !r.sent.Before(end) && r.status != 0 {
					away++
				}
			}
			return away >= 3
		})
	}
}

func usd(units uint64) string { return fmt.Sprintf("%.2f", float64(units)/dollar) }
