package source

import (
	"errors"
	"testing"
	"time"
)

// B: a prepaid source ran out for nine days, and was asked by everybody all the time.
func TestMeter_OverNineDaysOneRequestAnHourTestsABalance(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	f.must(f.meter(0), Settlement, 4000)
	f.shift(24 * time.Hour)
	f.ask(f.meter(0), noCredit)
	f.wantTold("at the first refusal", "out exhausted")
	const days, requesters = 9, 64
	for hour := range days * 24 {
		// Most of the time a few are enough; and twice a day all 64, over both replicas.
		n := 4
		if hour%12 == 0 {
			n = requesters
		}
		f.shift(time.Hour - time.Second)
		early := f.refused(f.meter(hour%2), Settlement, 2, Exhausted)
		if early.Wait <= 0 || early.Wait > 2*time.Second {
			t.Fatalf("hour %d: it is asked again in %s", hour, early.Wait)
		}
		f.shift(2 * time.Second)
		tests := f.atOnce(n, func(m *Meter) bool {
			g, err := m.Reserve(t.Context(), Settlement, 2)
			if err != nil {
				if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Why != Exhausted {
					t.Error(err)
				}
				return false
			}
			if !g.Tests() {
				t.Error("it was asked, and that is no test")
			}
			g.Report(t.Context(), noCredit)
			return true
		})
		if tests != 1 {
			t.Fatalf("hour %d: %d of %d requests went to the source, want 1", hour, tests, n)
		}
	}
	f.wantTold("through nine days")
	if f.again != days*24 {
		t.Errorf("told again %d times, want with each test", f.again)
	}
	if s := f.standing(); s.Cap != 12000 || s.Busiest != 4000 || s.Why != Exhausted {
		t.Errorf("on day ten the cap is %d after %d, %s; want three times the 4000 of the day before the outage", s.Cap, s.Busiest, s.Why)
	}

	// It is topped up: the next test finds it, and all who wait may go on.
	f.shift(time.Hour)
	g := f.must(f.meter(1), Refund, 1)
	f.refused(f.meter(0), Settlement, 2, Exhausted)
	g.Report(t.Context(), worked)
	f.wantTold("when it works", "back exhausted", "resume")
	if got := f.atOnce(requesters, func(m *Meter) bool { _, err := m.Reserve(t.Context(), Settlement, 2); return err == nil }); got != requesters {
		t.Errorf("%d of %d may ask it again", got, requesters)
	}
	f.ask(f.meter(0), noCredit)
	f.wantTold("a later outage", "out exhausted")
}

func TestMeter_ADailyQuotaIsAskedOnceADayAfterMidnight(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.RunsOut = Daily
	f := newFleet(t, of)
	f.noon()
	f.ask(f.meter(0), noCredit)
	for day := range 4 {
		now := f.now()
		f.shift(nextDay(now).Add(-2 * time.Second).Sub(now))
		if limit := f.refused(f.meter(1), Settlement, 1, Exhausted); !limit.Until.Equal(nextDay(now)) {
			t.Fatalf("day %d: until %s, want midnight", day, limit.Until)
		}
		f.shift(3 * time.Second)
		tests := f.atOnce(16, func(m *Meter) bool {
			g, err := m.Reserve(t.Context(), Settlement, 1)
			if err == nil {
				g.Report(t.Context(), noCredit)
			}
			return err == nil
		})
		if tests != 1 {
			t.Fatalf("day %d: %d tests, want 1", day, tests)
		}
	}
	f.wantTold("in all", "out exhausted")

	// A test that never comes back costs an hour, and not a day.
	now := f.now()
	f.shift(nextDay(now).Add(time.Second).Sub(now))
	f.must(f.meter(0), Settlement, 1).Report(t.Context(), Verdict{Kind: Troubled})
	if limit := f.refused(f.meter(0), Settlement, 1, Exhausted); limit.Wait > time.Hour || limit.Wait < time.Hour-time.Minute {
		t.Errorf("it is tested again in %s, want in an hour", limit.Wait)
	}
}

func TestGrant_Report_ASuccessFromBeforeTheOutageEndsNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	before := f.must(f.meter(0), Settlement, 1)
	f.ask(f.meter(1), noCredit)
	before.Report(t.Context(), worked)
	f.refused(f.meter(0), Settlement, 1, Exhausted)
	f.wantTold("in all", "out exhausted")
}

func TestGrant_Report_ManyRefusalsAtOnceAreOneOutage(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	grants := make(chan *Grant, 16)
	for i := range cap(grants) {
		grants <- f.must(f.meter(i%2), Settlement, 1)
	}
	f.atOnce(cap(grants), func(*Meter) bool { (<-grants).Report(t.Context(), noCredit); return true })
	f.wantTold("of sixteen", "out exhausted")
	if s := f.standing(); s.Said != "HTTP 402" || !s.RetryAt.Equal(s.ExhaustedAt.Add(time.Hour)) || s.OutSince.IsZero() {
		t.Errorf("it stands as %+v", s)
	}
}

// A storm of refusals is met by many at once, and the database with it: what the first has written costs the others no statement.
func TestGrant_Report_WhatIsKnownCostsNoStatement(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	m := f.meter(0)
	slowed := Verdict{Kind: Slowed, Wait: 30 * time.Second}
	first, second, third := f.must(m, Settlement, 1), f.must(m, Settlement, 1), f.must(m, Settlement, 1)
	first.Report(t.Context(), slowed)
	first.Report(t.Context(), noCredit)
	m.r.db.Close()
	second.Report(t.Context(), slowed)
	third.Report(t.Context(), noCredit)
	third.Report(t.Context(), Verdict{Kind: Troubled})
	f.wantTold("of three refusals", "out exhausted")
}

func TestMeter_ASourceThatComesAndGoesIsOneOutage(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	for range 10 { // topped up by a cent each time
		f.ask(f.meter(0), noCredit)
		f.tryNow()
		f.must(f.meter(1), Settlement, 1).Report(t.Context(), worked)
		f.shift(time.Second)
	}
	f.mu.Lock()
	outs := 0
	for _, what := range f.told {
		if what == "out exhausted" {
			outs++
		} else if what != "resume" {
			t.Errorf("told %s", what)
		}
	}
	f.told = nil
	f.mu.Unlock()
	if outs != 1 {
		t.Errorf("told %d times that it is out, want once", outs)
	}
	f.shift(calm - 2*time.Second)
	f.ask(f.meter(0), worked)
	f.wantTold("before it was calm for long enough")
	f.shift(2 * time.Second)
	f.ask(f.meter(0), worked)
	f.ask(f.meter(1), worked)
	f.wantTold("when it was", "back exhausted")
}

// A notice that could not be sent for three days is given up, and is made anew only by somebody who tells again.
func TestGrant_Report_ATestThatIsRefusedTellsOfTheSameOutageAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	late := f.must(f.meter(1), Settlement, 1)
	f.ask(f.meter(0), noCredit)
	late.Report(t.Context(), noCredit)
	f.wantTold("at first", "out exhausted")
	for test, fails := range []string{"", "out", ""} {
		f.fail = fails
		f.shift(time.Hour)
		f.ask(f.meter(test%2), noCredit)
	}
	f.wantTold("as an outage of its own")
	if f.again != 2 {
		t.Errorf("told again %d times, want with each of two tests, and not with the one whose hook failed", f.again)
	}
}

func TestRegistry_TryNow_TheNextRequestTests(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	f.tryNow() // nothing is out
	f.wantTold("while it works")
	f.ask(f.meter(0), noCredit)
	f.tryNow()
	f.wantTold("when it was topped up", "out exhausted", "resume")
	if got := f.atOnce(16, func(m *Meter) bool { _, err := m.Reserve(t.Context(), Refund, 1); return err == nil }); got != 1 {
		t.Errorf("%d requests test it, want 1", got)
	}
	tx, err := f.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if err := f.replicas[0].TryNow(t.Context(), tx, "facilitator/nobody"); !errors.Is(err, ErrUnknown) {
		t.Errorf("of a source that there is not: %v", err)
	}
}

func TestMeter_Reserve_APaceIsKeptByAllReplicas(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	f.ask(f.meter(0), Verdict{Kind: Slowed, Wait: 20 * time.Second})
	if limit := f.refused(f.meter(1), Settlement, 1, Paced); limit.Wait > 20*time.Second || limit.Wait < 15*time.Second {
		t.Errorf("it waits %s, want 20 s", limit.Wait)
	}
	f.shift(20 * time.Second)
	if g := f.must(f.meter(1), Settlement, 1); g.Tests() {
		t.Error("after a moment nothing is tested")
	}
	f.wantTold("of a pace")
}

// What waits for a source may be locked, or much: that it works again is kept all the same, or it would be out for one more window, and the next.
func TestGrant_Report_AHookThatTakesLongLosesNothingOfWhatWasLearnt(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	f.ask(f.meter(0), noCredit)
	f.shift(time.Hour)
	f.slow, f.fail = true, "none: but there is an error to be told"
	f.ask(f.meter(0), worked)
	f.load()
	if err := f.meter(1).Ready(); err != nil {
		t.Errorf("it was topped up, and is asked for as %v", err)
	}
	f.wantTold("of what was too slow", "out exhausted", "back exhausted")
}

// Nobody could be told: what was learnt is kept all the same, and the next occasion tells.
func TestGrant_Report_WhereNobodyCanBeToldTheStopHoldsAllTheSame(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	f.fail = "out"
	f.ask(f.meter(0), noCredit)
	f.refused(f.meter(1), Settlement, 1, Exhausted)
	f.fail = ""
	f.shift(time.Hour)
	f.ask(f.meter(1), noCredit)
	f.wantTold("at the next refusal", "out exhausted")
}
