package windowtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
)

// hang has the facilitator fall silent with callers at every door.
func hang(replicas int, allowed time.Duration) func(t *testing.T, f *fleet) string {
	return func(t *testing.T, f *fleet) string {
		f.allows(t, allowed)
		f.served(t)
		f.full(true)
		began := f.authority.becomes(hangs)
		f.stopped(t, f.alive(), allowed)
		if replicas == 2 && f.shownSince(began) == 0 { // eight withdraw before a busy machine may have shown anything
			t.Error("nothing was shown to the facilitator after it fell silent: its last answers were worth nothing")
		}
		return f.withdrawals(t, f.alive(), allowed)
	}
}

// allows waits until every replica reckons with this allowance.
func (f *fleet) allows(t testing.TB, allowed time.Duration) {
	t.Helper()
	for _, m := range f.alive() {
		apptest.Eventually(t, fmt.Sprintf("the allowance of replica %s is %s", m.name, allowed), func() bool {
			l := m.last()
			return l.State == stateReady && l.AllowanceMS == allowed.Milliseconds()
		})
	}
}

// served waits until some payments have been settled and served: before an outage the market is an ordinary one.
func (f *fleet) served(t testing.TB) {
	t.Helper()
	apptest.Eventually(t, "payments are settled and served", func() bool {
		for _, m := range f.alive() {
			_, replies := m.seen()
			if slices.ContainsFunc(replies, func(r reply) bool { return r.paid != nil && r.status == 200 }) {
				return true
			}
		}
		return false
	})
}

// withdrawals checks the replicas, and says how they withdrew.
func (f *fleet) withdrawals(t testing.TB, members []*member, allowed time.Duration) string {
	t.Helper()
	var (
		first, last time.Duration
		late        int
	)
	for _, m := range members {
		w := f.withdrawn(t, m, allowed)
		if first == 0 || w.after < first {
			first = w.after
		}
		last = max(last, w.after)
		late += w.late
	}
	return fmt.Sprintf("withdrew %s to %s after the last proof, of %s; %s USD shown since then, %d later requests all refused",
		seconds(first), seconds(last), seconds(allowed), usd(f.authority.sight().exposed()), late)
}

// shownSince are the units that the facilitator was shown since an instant.
func (f *fleet) shownSince(at time.Time) (units uint64) {
	for _, one := range f.authority.sight().all {
		if one.at.After(at) {
			units += one.units
		}
	}
	return units
}

// exposed is what was shown since the last proof.
func (s sight) exposed() (units uint64) {
	for _, one := range s.all {
		if one.at.After(s.since) {
			units += one.units
		}
	}
	return units
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// blink has the facilitator fail until every replica has found out, and no longer.
func blink(t *testing.T, f *fleet) string {
	f.allows(t, allowance(2))
	began := f.authority.becomes(fails)
	for _, m := range f.alive() {
		apptest.Eventually(t, "replica "+m.name+" has found out", func() bool { return m.last().State != stateReady })
	}
	shown := func() bool { return f.shownSince(began) > 0 }
	apptest.Eventually(t, "a payment is taken meanwhile, or it was too long", func() bool { return shown() || !f.alive()[0].last().admits() })
	f.authority.becomes(answers)
	f.allReady(t)
	degraded, withdrew := 0, 0
	for _, m := range f.alive() {
		looks, _ := m.seen()
		for _, l := range looks {
			switch {
			case l.sent.Before(began):
			case l.State == stateDegraded:
				degraded++
			case l.State == stateNotReady:
				withdrew++ // where this machine let more time pass than the allowance: the judge sees that it did
			}
		}
	}
	if degraded == 0 {
		t.Error("no replica was ever degraded")
	}
	return fmt.Sprintf("degraded in %d answers, not ready in %d; %s USD shown meanwhile", degraded, withdrew, usd(f.shownSince(began)))
}

// refuse has the facilitator say a definite no, and hang after that.
func refuse(t *testing.T, f *fleet) string {
	f.allows(t, allowance(2))
	began := f.authority.becomes(refuses)
	var left []string
	for _, m := range f.alive() {
		apptest.Eventually(t, "replica "+m.name+" withdraws", func() bool { return !m.last().admits() })
		looks, _ := m.seen()
		at := slices.IndexFunc(looks, func(l look) bool { return l.State == stateNotReady && l.sent.After(began) })
		l := looks[at]
		if age, proved := l.age(); !isDenied(l.standing) {
			t.Errorf("replica %s withdraws because of %s, with proofs of %d ms (%t)", m.name, l.Why, age, proved)
		}
		left = append(left, seconds(allowance(2)-l.sent.Sub(f.authority.sight().good[m.name])))
	}
	f.authority.becomes(hangs)
	asked := f.authority.sight().asked
	apptest.Eventually(t, "everybody has asked again in vain", func() bool { return f.authority.sight().asked >= asked+2*len(f.alive()) })
	for _, m := range f.alive() {
		if l := m.last(); l.admits() {
			t.Errorf("replica %s is %s: silence is no yes", m.name, l.State)
		}
	}
	return "withdrew with " + strings.Join(left, " and ") + " of the allowance left; silence changed nothing"
}

// joinDuringOutage starts a replica while the facilitator answers nobody.
func joinDuringOutage(t *testing.T, f *fleet) string {
	f.allows(t, allowance(2))
	old := f.alive()
	f.authority.becomes(fails)
	joiner := f.join(t, 1)[0]
	f.full(true)
	f.stopped(t, old, allowance(2))
	apptest.Eventually(t, "the new one has turned payments away", func() bool {
		_, replies := joiner.seen()
		return len(paid(replies)) >= 10
	})
	_, replies := joiner.seen()
	for _, r := range replies {
		if r.status != 503 && r.status != 0 {
			t.Errorf("the new one answers %d %s", r.status, r.code)
		}
	}
	looks, _ := joiner.seen()
	for _, l := range looks {
		if l.admits() {
			t.Errorf("the new one is %s, and nobody has answered it", l.State)
		}
	}
	if units := f.authority.sight().units(joiner.name, time.Time{}); units != 0 {
		t.Errorf("the new one showed %s USD", usd(units))
	}
	for _, m := range old {
		f.withdrawn(t, m, allowance(2))
	}
	turned := len(paid(replies))
	f.full(false)
	f.authority.becomes(answers)
	f.allReady(t)
	f.allows(t, allowance(3))
	apptest.Eventually(t, "the new one takes payments when it was answered", func() bool { return f.authority.sight().units(joiner.name, time.Time{}) > 0 })
	return fmt.Sprintf("it turned %d payments away and showed none, until it was answered itself; then the allowance of all was %s", turned, seconds(allowance(3)))
}

// crash kills one of three replicas in the moment in which the facilitator falls silent.
func crash(t *testing.T, f *fleet) string {
	f.allows(t, allowance(3))
	f.full(true)
	victim := f.alive()[2]
	f.authority.becomes(hangs)
	f.kill(victim)
	f.stopped(t, f.alive(), allowance(3))
	saw := f.withdrawals(t, f.alive(), allowance(3))
	f.full(false)
	f.authority.becomes(answers)
	f.allows(t, allowance(2))
	return saw + "; later the allowance was " + seconds(allowance(2))
}

// paid are the replies to payments.
func paid(replies []reply) (out []reply) {
	for _, r := range replies {
		if r.paid != nil && r.status != 0 {
			out = append(out, r)
		}
	}
	return out
}

func isTooOld(s standing) bool { return s.Why == "too_old" }
func isDenied(s standing) bool { return s.Why == "denied" }
