package outage

import (
	"testing"
	"time"

	"market/internal/call"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// enough is the smallest pattern that trips: 5 of 10 asked services, of 3 providers.
var enough = Failing{Asked: 10, Failed: 5, Providers: 3}

func TestPolicy_Trips_AtItsBoundariesAndNotBelow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		facts Facts
		want  Cause
	}{
		"nothing is known":                          {Facts{}, ""},
		"half of the asked, five, of three":         {Facts{Failing: enough}, Services},
		"just under half of the asked":              {Facts{Failing: Failing{Asked: 11, Failed: 5, Providers: 3}}, ""},
		"just over half of the asked":               {Facts{Failing: Failing{Asked: 9, Failed: 5, Providers: 3}}, Services},
		"half of many":                              {Facts{Failing: Failing{Asked: 400, Failed: 200, Providers: 90}}, Services},
		"one under half of many":                    {Facts{Failing: Failing{Asked: 400, Failed: 199, Providers: 90}}, ""},
		"all, and one too few":                      {Facts{Failing: Failing{Asked: 4, Failed: 4, Providers: 4}}, ""},
		"all five of a quiet market":                {Facts{Failing: Failing{Asked: 5, Failed: 5, Providers: 3}}, Services},
		"six, of three":                             {Facts{Failing: Failing{Asked: 6, Failed: 6, Providers: 3}}, Services},
		"twenty of one provider":                    {Facts{Failing: Failing{Asked: 20, Failed: 20, Providers: 1}}, ""},
		"twenty of two providers":                   {Facts{Failing: Failing{Asked: 20, Failed: 20, Providers: 2}}, ""},
		"twenty of four providers":                  {Facts{Failing: Failing{Asked: 20, Failed: 20, Providers: 4}}, Services},
		"one sounding failed":                       {Facts{Soundings: Soundings{Failed: true}}, ""},
		"two failed just within ten seconds":        {Facts{Soundings: Soundings{Failed: true, Before: 10*time.Second - time.Nanosecond}}, Canaries},
		"two failed ten seconds apart":              {Facts{Soundings: Soundings{Failed: true, Before: 10 * time.Second}}, Canaries},
		"two failed more than ten seconds apart":    {Facts{Soundings: Soundings{Failed: true, Before: 10*time.Second + time.Nanosecond}}, ""},
		"the one before failed, the newest did not": {Facts{Soundings: Soundings{Before: time.Second}}, ""},
		"both": {Facts{Soundings: Soundings{Failed: true, Before: time.Second}, Failing: enough}, Canaries},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Usual().Trips(tt.facts); got != tt.want {
				t.Errorf("trips by %q, want %q", got, tt.want)
			}
		})
	}
}

// at is what is known so long after noon.
func at(after time.Duration, f Facts) Facts {
	f.At = noon.Add(after)
	return f
}

var (
	quiet    = Facts{}
	failing  = Facts{Failing: enough}
	silent   = Facts{Soundings: Soundings{Failed: true, Before: 5 * time.Second}}
	doubtful = Facts{Soundings: Soundings{Failed: true}}
)

// walk takes a state through the same facts, a second after another.
func walk(s State, from time.Duration, seconds int, f Facts) State {
	for n := range seconds {
		s = Usual().Next(s, at(from+time.Duration(n)*time.Second, f))
	}
	return s
}

func TestPolicy_Next_EndsWhenItsConditionHasNotHeldForAMinute(t *testing.T) {
	t.Parallel()
	for _, facts := range []Facts{failing, silent} {
		s := Usual().Next(State{}, at(0, facts))
		if !s.Holds() || s.Cause != Usual().Trips(facts) || !s.Began.Equal(noon) {
			t.Fatalf("the outage did not begin: %+v", s)
		}
		for after, holds := range map[time.Duration]bool{
			time.Minute - time.Microsecond: true,
			time.Minute:                    false,
			time.Minute + time.Microsecond: false,
		} {
			if got := Usual().Next(s, at(after, quiet)); got.Holds() != holds {
				t.Errorf("%s: %s after its condition held: holds = %v, want %v", s.Cause, after, got.Holds(), holds)
			}
		}
	}
}

func TestPolicy_Next_GoesOnWhileItsConditionHolds(t *testing.T) {
	t.Parallel()
	s := Usual().Next(State{}, at(0, failing))
	s = Usual().Next(s, at(59*time.Second, failing))
	if s = Usual().Next(s, at(118*time.Second, quiet)); !s.Holds() {
		t.Error("it ended 59 s after its condition held again")
	}
	if s = Usual().Next(s, at(119*time.Second, quiet)); s.Holds() || !s.Ended.Equal(noon.Add(119*time.Second)) {
		t.Errorf("a minute after its condition held: %+v", s)
	}
}

func TestPolicy_Next_OneSoundingKeepsUpWhatTwoBegan(t *testing.T) {
	t.Parallel()
	s := Usual().Next(State{}, at(0, silent))
	s = Usual().Next(s, at(30*time.Second, doubtful))
	if !s.Held.Equal(noon.Add(30 * time.Second)) {
		t.Errorf("held at %v: one round in which no canary takes a connection keeps it up", s.Held)
	}
}

func TestPolicy_Next_ServicesAloneExcuseTenMinutesAtMost(t *testing.T) {
	t.Parallel()
	s := walk(State{}, 0, 600, failing) // until 599 s
	if !s.Holds() {
		t.Fatal("it ended before ten minutes were over")
	}
	for after, holds := range map[time.Duration]bool{
		10*time.Minute - time.Microsecond: true,
		10 * time.Minute:                  false,
		10*time.Minute + time.Microsecond: false,
	} {
		if got := Usual().Next(s, at(after, failing)); got.Holds() != holds {
			t.Errorf("%s after it began: holds = %v, want %v", after, got.Holds(), holds)
		}
	}
	if c := walk(State{}, 0, 1200, silent); !c.Holds() {
		t.Error("what the canaries say is not bounded, and it ended")
	}
}

func TestPolicy_Next_AfterTenMinutesItBeginsAgainOnlyWhenServicesHaveLetGoForAMinute(t *testing.T) {
	t.Parallel()
	ended := walk(State{}, 0, 601, failing)
	if ended.Holds() {
		t.Fatal("it holds for more than ten minutes")
	}
	s := walk(ended, 601*time.Second, 4400, failing) // beyond the rest, which is over after 4500 s
	if s.Holds() {
		t.Fatal("services that go on failing begin a second outage")
	}
	// The condition held last at 5000 s.
	for after, holds := range map[time.Duration]bool{
		5060*time.Second - time.Microsecond: false,
		5060 * time.Second:                  true,
		5060*time.Second + time.Microsecond: true,
	} {
		if got := Usual().Next(s, at(after, failing)); got.Holds() != holds {
			t.Errorf("%s after noon, a minute after it held last at 5000 s: holds = %v, want %v", after, got.Holds(), holds)
		}
	}
	if got := Usual().Next(s, at(5001*time.Second, silent)); got.Cause != Canaries || !got.Holds() {
		t.Errorf("what the canaries say begins an outage at any time: %+v", got)
	}
}

// What was excused of noon's is three minutes and one: it rests for twenty.
func TestPolicy_Next_ServicesAloneBeginNoOtherBeforeFiveTimesWhatTheyExcused(t *testing.T) {
	t.Parallel()
	s := Usual().Next(State{}, at(0, failing))
	s = Usual().Next(s, at(time.Minute, quiet))
	if s.Holds() || s.Ended.Sub(s.Reaches) != 4*time.Minute {
		t.Fatalf("state %+v, want one that excused four minutes", s)
	}
	for after, holds := range map[time.Duration]bool{
		time.Minute:                         false,
		2 * time.Minute:                     false, // they have let go for a minute
		21*time.Minute - time.Microsecond:   false,
		21 * time.Minute:                    true,
		21*time.Minute + time.Microsecond:   true,
		24*time.Hour + 21*time.Minute:       true,
		20*time.Minute + 59*time.Second + 1: false,
	} {
		if got := Usual().Next(s, at(after, failing)); got.Holds() != holds {
			t.Errorf("%s after noon: holds = %v, want %v", after, got.Holds(), holds)
		}
		if got := Usual().Next(s, at(after, silent)); !got.Holds() || got.Cause != Canaries {
			t.Errorf("%s after noon the canaries begin none: %+v", after, got)
		}
	}
}

// Whoever lets services fail at once to be excused with them, and lets go so that it can begin again, gets a sixth of the time.
func TestPolicy_Next_ServicesThatFailWheneverItHelpsExcuseASixthOfTheTimeAtMost(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(s State, now time.Duration) bool{
		"as soon as the last is over":                  func(s State, now time.Duration) bool { return !s.Holds() && now >= s.Held.Sub(noon)+time.Minute },
		"as long as it holds":                          func(s State, now time.Duration) bool { return s.Holds() || now >= s.Held.Sub(noon)+time.Minute },
		"when the rest is over":                        func(s State, now time.Duration) bool { return !s.Holds() && now >= Usual().rested(s).Sub(noon) },
		"when the rest is over, for as long as can be": func(s State, now time.Duration) bool { return now >= Usual().rested(s).Sub(noon) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var (
				s       State
				first   time.Time
				excused time.Duration
				begun   int
			)
			for now := time.Duration(0); now < 6*time.Hour; now += time.Second {
				f := quiet
				if fails(s, now) {
					f = failing
				}
				before := s
				s = Usual().Next(s, at(now, f))
				switch {
				case before.Holds() && !s.Holds():
					excused += s.Ended.Sub(s.Reaches)
				case before.Holds() || !s.Holds():
				case begun == 0:
					begun, first = 1, s.Reaches
				default:
					begun++
					if since := s.Reaches.Sub(first); 6*excused > since {
						t.Errorf("%s after noon %s are excused, of %s", now, excused, since)
					}
				}
			}
			if begun < 4 {
				t.Errorf("%d outages: what was to be bounded did not happen", begun)
			}
		})
	}
}

func TestPolicy_Next_WhatNobodyLookedAtForLongDoesNotRestForIt(t *testing.T) {
	t.Parallel()
	s := Usual().Next(State{}, at(0, failing))
	s = Usual().Next(s, at(12*time.Hour, quiet))
	if got := Usual().Next(s, at(12*time.Hour+65*time.Minute, failing)); s.Holds() || !got.Holds() {
		t.Errorf("the outage of a night without a replica rests on: %+v", got)
	}
}

func TestPolicy_Next_CanariesTakeOverWhatServicesBegan(t *testing.T) {
	t.Parallel()
	s := Usual().Next(State{}, at(0, failing))
	s = Usual().Next(s, at(time.Second, silent))
	if s.Cause != Canaries || !s.Began.Equal(noon) {
		t.Fatalf("state %+v, want the same outage, by the canaries", s)
	}
	s = walk(s, 2*time.Second, 700, Facts{Soundings: silent.Soundings, Failing: enough})
	if !s.Holds() {
		t.Error("it ended after ten minutes, and the canaries still fail")
	}
	if s = walk(s, 702*time.Second, 60, failing); s.Cause != Canaries || s.Holds() {
		t.Errorf("a minute after the canaries took connections again: %+v", s)
	}
	if s = walk(s, 762*time.Second, 1, failing); s.Cause != Services || !s.Holds() {
		t.Errorf("services that still fail then are an outage of their own, for ten minutes: %+v", s)
	}
}

func TestPolicy_Next_ReachesBackThreeMinutesAndNotIntoTheOneBefore(t *testing.T) {
	t.Parallel()
	first := Usual().Next(State{}, at(0, silent))
	if want := noon.Add(-3 * time.Minute); !first.Reaches.Equal(want) {
		t.Errorf("reaches back to %v, want %v", first.Reaches, want)
	}
	first = Usual().Next(first, at(time.Minute, quiet))
	for after, want := range map[time.Duration]time.Time{
		2 * time.Minute:                 noon.Add(time.Minute),
		4 * time.Minute:                 noon.Add(time.Minute),
		4*time.Minute + time.Nanosecond: noon.Add(time.Minute + time.Nanosecond),
	} {
		if got := Usual().Next(first, at(after, silent)); !got.Reaches.Equal(want) {
			t.Errorf("one that begins %s after noon reaches back to %v, want %v", after, got.Reaches, want)
		}
	}
}

func TestState_Excuses_WhatWasRecordedSinceItReachesBackAndAskedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	open := State{Cause: Services, Began: noon, Reaches: noon.Add(-3 * time.Minute), Held: noon}
	over := open
	over.Ended = noon.Add(time.Minute)
	long := noon.Add(-time.Hour)
	for name, tt := range map[string]struct {
		state           State
		asked, recorded time.Time
		want            bool
	}{
		"there never was one":                          {State{}, noon, noon, false},
		"recorded just before it reaches back":         {open, long, open.Reaches.Add(-time.Microsecond), false},
		"recorded where it reaches back to":            {open, long, open.Reaches, true},
		"recorded just after that":                     {open, long, open.Reaches.Add(time.Microsecond), true},
		"asked while it holds":                         {open, noon.Add(time.Hour), noon.Add(2 * time.Hour), true},
		"asked just before its end, recorded after":    {over, over.Ended.Add(-time.Microsecond), over.Ended.Add(time.Hour), true},
		"asked at its end":                             {over, over.Ended, over.Ended.Add(time.Second), true},
		"asked just after its end":                     {over, over.Ended.Add(time.Microsecond), over.Ended.Add(time.Second), false},
		"recorded before the one that is over reached": {over, long, over.Reaches.Add(-time.Microsecond), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.state.Excuses(tt.asked, tt.recorded); got != tt.want {
				t.Errorf("excused = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestJoins_WhatAServiceDoesAndWhatOurWayOutDoesAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, row := range call.Rows() {
		want := row.Outcome == call.Failed && row.Party == call.Service || row.Reason == call.EgressDown || row.Reason == call.LocalError
		for _, from := range call.Origins() {
			if got := Joins(row.Reason, true, from); got != (want && from.Counts()) {
				t.Errorf("%s of a call from %s joins = %v", row.Reason, from, got)
			}
			if Joins(row.Reason, false, from) {
				t.Errorf("%s joins, and nobody was asked", row.Reason)
			}
		}
	}
	for _, r := range []call.Reason{call.Withdrawn, call.Interrupted, call.CallerStalled, call.LateSettlement, call.SettlementLost, call.RejectedByService} {
		if Joins(r, true, call.External) {
			t.Errorf("%s joins", r)
		}
	}
}
