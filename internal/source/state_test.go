package source

import (
	"testing"
	"time"
)

var (
	noonUTC = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	quota   = Source{Name: "quota", Kind: KindRPC, RunsOut: Daily, RetryWindow: time.Hour}
	balance = Source{Name: "balance", Kind: KindFacilitator, RunsOut: Prepaid, RetryWindow: time.Hour}
	free    = Source{Name: "free", Kind: KindRPC, RunsOut: Rate, RetryWindow: 2 * time.Hour}
)

func TestRetryAt_WhatTheSourceSaysComesFirst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		of      Source
		verdict Verdict
		at      time.Time
		want    time.Duration // after at
	}{
		"a balance":                             {balance, noCredit, noonUTC, time.Hour},
		"a balance just before midnight":        {balance, noCredit, noonUTC.Add(12*time.Hour - time.Minute), time.Hour},
		"a quota":                               {quota, noCredit, noonUTC, 12 * time.Hour},
		"a quota just before midnight":          {quota, noCredit, noonUTC.Add(12*time.Hour - time.Microsecond), time.Microsecond},
		"a quota at midnight":                   {quota, noCredit, noonUTC.Add(12 * time.Hour), 24 * time.Hour},
		"one that is free":                      {free, noCredit, noonUTC, 2 * time.Hour},
		"it says less than a minute":            {balance, Verdict{Kind: Refused, Wait: time.Minute - 1}, noonUTC, time.Hour},
		"it says a minute":                      {balance, Verdict{Kind: Refused, Wait: time.Minute}, noonUTC, time.Minute},
		"it says a day":                         {quota, Verdict{Kind: Refused, Wait: 24 * time.Hour}, noonUTC, 24 * time.Hour},
		"it says more than a day":               {quota, Verdict{Kind: Refused, Wait: 24*time.Hour + 1}, noonUTC, 24 * time.Hour},
		"our credential, whatever else it says": {quota, Verdict{Kind: Rejected, Wait: time.Hour}, noonUTC, 5 * time.Minute},
	} {
		if got := retryAt(tt.of, tt.verdict, tt.at).Sub(tt.at); got != tt.want {
			t.Errorf("%s: asked again after %s, want %s", name, got, tt.want)
		}
	}
}

// out is a balance that was found empty at noon by a request of a second before.
func outAtNoon(t *testing.T) state {
	t.Helper()
	s, did := state{}.learn(balance, noCredit, noonUTC.Add(-time.Second), noonUTC)
	if want := (change{written: true, out: true, refused: true}); did != want || s.why != Exhausted || !s.retryAt.Equal(noonUTC.Add(time.Hour)) {
		t.Fatalf("%+v, %+v", s, did)
	}
	return s
}

func TestState_OneOutageIsBegunOnce(t *testing.T) {
	t.Parallel()
	s := outAtNoon(t)
	if again, did := s.learn(balance, noCredit, noonUTC.Add(-time.Microsecond), noonUTC.Add(time.Second)); did != (change{}) || again != s {
		t.Errorf("a request that was under way with the first changed %+v", did)
	}
	s.exhaustedAt = noonUTC.Add(time.Hour) // the test passes
	s, did := s.learn(balance, Verdict{Kind: Rejected, Said: "HTTP 401"}, noonUTC.Add(time.Hour), noonUTC.Add(time.Hour+time.Second))
	if want := (change{written: true, refused: true}); did != want || s.why != Denied || s.said != "HTTP 401" || !s.outSince.Equal(noonUTC) {
		t.Errorf("the test was refused: %+v, %+v", s, did)
	}
}

func TestState_OnlyARequestOfSinceThenProvesAnything(t *testing.T) {
	t.Parallel()
	s := outAtNoon(t)
	for name, tt := range map[string]struct {
		reserved time.Duration // after noon
		clears   bool
	}{
		"just before the refusal": {-time.Microsecond, false},
		"at the refusal":          {0, true},
		"just after it":           {time.Microsecond, true},
	} {
		after, did := s.learn(balance, worked, noonUTC.Add(tt.reserved), noonUTC.Add(time.Minute))
		if did.cleared != tt.clears || after.stops() == tt.clears || did.recovered {
			t.Errorf("%s: %+v, %+v", name, after, did)
		}
	}
	cleared, _ := s.learn(balance, worked, noonUTC.Add(time.Hour), noonUTC.Add(time.Hour))
	if after, did := cleared.learn(balance, noCredit, noonUTC.Add(time.Hour-time.Microsecond), noonUTC.Add(time.Hour+time.Second)); did != (change{}) || after.stops() {
		t.Errorf("a refusal of a request from before it worked: %+v, %+v", after, did)
	}
	if after, did := cleared.learn(balance, noCredit, noonUTC.Add(time.Hour), noonUTC.Add(time.Hour+time.Second)); !did.refused || !after.stops() {
		t.Errorf("a refusal of a request from since it worked: %+v, %+v", after, did)
	}
}

func TestState_TheOutageIsOverWhenItHasNotRefusedForAWhile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after     time.Duration // the refusal
		recovered bool
	}{
		"just before": {calm - time.Microsecond, false},
		"on it":       {calm, true},
		"just after":  {calm + time.Microsecond, true},
	} {
		s := outAtNoon(t)
		at := noonUTC.Add(tt.after)
		s, did := s.learn(balance, worked, at, at)
		if want := (change{written: true, cleared: true, recovered: tt.recovered, was: did.was}); did != want || (did.was == Exhausted) != tt.recovered ||
			s.outSince.IsZero() != tt.recovered {
			t.Errorf("%s: %+v, %+v", name, s, did)
		}
		if !tt.recovered {
			if s.recovering(at) || !s.recovering(noonUTC.Add(calm)) {
				t.Errorf("%s: recovering %v, later %v", name, s.recovering(at), s.recovering(noonUTC.Add(calm)))
			}
		}
	}
}

func TestState_AMomentIsNoOutage(t *testing.T) {
	t.Parallel()
	slow := func(wait time.Duration) Verdict { return Verdict{Kind: Slowed, Wait: wait} }
	s, did := state{}.learn(free, slow(5*time.Second), noonUTC, noonUTC)
	if why, until := s.waits(noonUTC); did != (change{written: true}) || s.stops() || why != Paced || !until.Equal(noonUTC.Add(5*time.Second)) {
		t.Errorf("%+v, %+v: %s until %s", s, did, why, until)
	}
	if why, _ := s.waits(noonUTC.Add(5 * time.Second)); why != 0 {
		t.Errorf("after the moment it is %s", why)
	}
	for name, tt := range map[string]struct {
		wait, later time.Duration
		written     bool
	}{
		"a shorter one":                   {time.Second, 0, false},
		"one that ends a little later":    {5*time.Second + time.Second - 1, 0, false},
		"one that ends a second later":    {6 * time.Second, 0, true},
		"the next one":                    {5 * time.Second, time.Minute, true},
		"one of no length is of a second": {0, time.Minute, true},
	} {
		if _, did := s.learn(free, slow(tt.wait), noonUTC, noonUTC.Add(tt.later)); did.written != tt.written {
			t.Errorf("%s: written %v, want %v", name, did.written, tt.written)
		}
	}
	// A test that is asked to wait is made again after that, and not an hour later.
	tested := outAtNoon(t)
	at := noonUTC.Add(time.Hour)
	tested.exhaustedAt, tested.retryAt = at, at.Add(time.Hour)
	tested, _ = tested.learn(balance, slow(10*time.Second), at, at)
	if _, until := tested.waits(at); !tested.stops() || !until.Equal(at.Add(10*time.Second)) {
		t.Errorf("the next test is at %s", until)
	}
}

func TestState_TroubleChangesNothing(t *testing.T) {
	t.Parallel()
	s := outAtNoon(t)
	if after, did := s.learn(balance, Verdict{Kind: Troubled}, noonUTC, noonUTC.Add(time.Hour)); did != (change{}) || after != s {
		t.Errorf("%+v, %+v", after, did)
	}
}

func TestState_TheGuardHoldsForItsDayAndItsCap(t *testing.T) {
	t.Parallel()
	s := state{guardReachedAt: noonUTC, guardCap: 100}
	today, tomorrow := dayOf(noonUTC), nextDay(noonUTC)
	for name, tt := range map[string]struct {
		day   time.Time
		limit int64
		want  bool
	}{
		"today": {today, 100, true}, "today under a lower cap": {today, 99, true}, "today under a higher one": {today, 101, false}, "tomorrow": {tomorrow, 100, false},
	} {
		if got := s.guards(tt.day, tt.limit); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if (state{}).guards(today, 0) {
		t.Error("a guard that was never reached holds")
	}
}
