package watch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"market/internal/notify"
	"market/internal/source"
)

var (
	noon     = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	notReady = key{notify.NetworkNotReady, "eip155:1"}
)

func bad(k key) []finding {
	return []finding{{key: k, bad: true, told: notify.Outage{What: "it is bad"}}}
}

// looks takes what is found at moments after noon, in order: true is bad.
func looks(s *sightings, at map[time.Duration]bool, order ...time.Duration) (seen []Sighting) {
	for _, after := range order {
		var found []finding
		if at[after] {
			found = bad(notReady)
		}
		seen = s.take(noon.Add(after), found)
	}
	return seen
}

func newSightings() *sightings {
	return &sightings{quiet: UsualPace.Quiet, spells: map[key]spell{}}
}

func TestSightings_WhatComesAndGoesIsOneTrouble(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		away time.Duration // until it is bad again
		want time.Duration // the trouble lasts
	}{
		"away for less than a minute": {time.Minute - 1, 30*time.Second + time.Minute - 1},
		"away for a minute":           {time.Minute, 0},
		"away for more":               {time.Minute + 1, 0},
	} {
		again := 30*time.Second + tt.away
		seen := looks(newSightings(), map[time.Duration]bool{0: true, 30 * time.Second: true, again: true}, 0, 30*time.Second, again-1, again)
		if len(seen) != 1 || !seen[0].Bad || seen[0].For != tt.want {
			t.Errorf("%s: %+v, want one trouble that lasts %s", name, seen, tt.want)
		}
	}
}

func TestSightings_WhatIsAwayIsSeenForAMinuteLonger(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]int{0: 1, time.Minute - 1: 1, time.Minute: 0, time.Minute + 1: 0} {
		s := newSightings()
		seen := looks(s, map[time.Duration]bool{0: true}, 0, after)
		if after == 0 {
			seen = s.take(noon, nil)
		}
		if len(seen) != want || want == 1 && seen[0].Bad {
			t.Errorf("%s after it was bad last: %+v, want %d that is not bad", after, seen, want)
		}
	}
}

func TestPace_ATroubleThatMayPassIsToldWhenItHasLasted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		s    Sighting
		want bool
	}{
		"just before":                     {Sighting{Kind: notify.NetworkNotReady, Bad: true, For: 2*time.Minute - 1}, false},
		"on it":                           {Sighting{Kind: notify.NetworkNotReady, Bad: true, For: 2 * time.Minute}, true},
		"just after":                      {Sighting{Kind: notify.NetworkNotReady, Bad: true, For: 2*time.Minute + 1}, true},
		"away at the moment":              {Sighting{Kind: notify.NetworkNotReady, For: time.Hour}, false},
		"money that is short, just now":   {Sighting{Kind: notify.TreasuryShort, Bad: true}, false},
		"a clock that is wrong, just now": {Sighting{Kind: notify.ClockApart, Bad: true}, false},
		"gas does not come by itself":     {Sighting{Kind: notify.GasLow, Bad: true}, true},
		"a loop that hangs":               {Sighting{Kind: notify.WorkStopped, Bad: true}, true},
		"late refunds, just before":       {Sighting{Kind: notify.RefundsLate, Bad: true, For: 4*time.Minute - 1}, false},
		"late refunds, on it":             {Sighting{Kind: notify.RefundsLate, Bad: true, For: 4 * time.Minute}, true},
		"a kind that is told otherwise":   {Sighting{Kind: notify.JobDiscarded, Bad: true, For: time.Hour}, false},
	} {
		if got := UsualPace.tells(tt.s); got != tt.want {
			t.Errorf("%s: told %v, want %v", name, got, tt.want)
		}
	}
}

func TestPace_Decide_ProcessesWithDifferentViewsDoNotContradictEachOther(t *testing.T) {
	t.Parallel()
	var (
		long     = Sighting{Kind: notify.NetworkNotReady, Subject: "eip155:1", Bad: true, For: 2 * time.Minute}
		brief    = Sighting{Kind: notify.NetworkNotReady, Subject: "eip155:1", Bad: true, For: time.Minute}
		fading   = Sighting{Kind: notify.NetworkNotReady, Subject: "eip155:1", For: time.Hour}
		another  = Sighting{Kind: notify.NetworkNotReady, Subject: "eip155:2", Bad: true, For: time.Hour}
		well     = Report{Up: time.Hour}
		seeing   = func(s ...Sighting) Report { return Report{Up: time.Hour, Sightings: s} }
		isOpen   = []key{notReady}
		gas      = []key{{notify.GasLow, "eip155:1"}}
		looked   = Report{Up: time.Hour, Fine: []Fine{{notify.GasLow, "eip155:1"}}}
		low      = seeing(Sighting{Kind: notify.GasLow, Subject: "eip155:1", Bad: true})
		elsewise = key{notify.ServiceHeld, "a-service"}
	)
	for name, tt := range map[string]struct {
		reports       []Report
		open          []key
		raise, settle int
	}{
		"all is well":                            {[]Report{well, well}, nil, 0, 0},
		"one of two says no":                     {[]Report{well, seeing(long)}, nil, 1, 0},
		"both say no":                            {[]Report{seeing(long), seeing(long)}, nil, 1, 0},
		"one says no, not for long":              {[]Report{well, seeing(brief)}, nil, 0, 0},
		"it is told already":                     {[]Report{well, seeing(long)}, isOpen, 0, 0},
		"another network":                        {[]Report{well, seeing(long, another)}, isOpen, 1, 0},
		"one still says no, not for long":        {[]Report{well, seeing(brief)}, isOpen, 0, 0},
		"one says yes for less than a minute":    {[]Report{well, seeing(fading)}, isOpen, 0, 0},
		"all say yes":                            {[]Report{well, well}, isOpen, 0, 1},
		"all say yes, one of them is new":        {[]Report{well, {Up: time.Minute - 1}}, isOpen, 0, 0},
		"the new one has looked for a minute":    {[]Report{well, {Up: time.Minute}}, isOpen, 0, 1},
		"nobody says anything":                   {nil, isOpen, 0, 0},
		"what others settle":                     {[]Report{well}, []key{elsewise, {notify.JobDiscarded, "x"}}, 0, 0},
		"nobody has looked at the gas":           {[]Report{well, well}, gas, 0, 0},
		"one found enough gas":                   {[]Report{well, looked}, gas, 0, 1},
		"one found enough gas, and one did not":  {[]Report{low, looked}, gas, 0, 0},
		"who saw it is gone, with what it alone": {[]Report{well}, []key{{notify.WorkStopped, "replica 1/sweeper"}}, 0, 1},
	} {
		raise, settle := UsualPace.decide(tt.reports, tt.open)
		if len(raise) != tt.raise || len(settle) != tt.settle {
			t.Errorf("%s: raised %v, settled %v; want %d and %d", name, raise, settle, tt.raise, tt.settle)
		}
	}
}

func TestNetworks_WhatASourceTellsIsToldOnce(t *testing.T) {
	t.Parallel()
	limit := func(why source.Why) error {
		return fmt.Errorf("ready: %w", &source.LimitError{Source: "facilitator/x", Why: why})
	}
	for why, want := range map[source.Why]int{source.Exhausted: 0, source.Guarded: 0, source.Denied: 0, source.Paced: 1} {
		if found := networks(map[string]error{"eip155:2": limit(why)}); len(found) != want {
			t.Errorf("a source that is %s: found %+v, want %d", why, found, want)
		}
	}
	found := networks(map[string]error{"eip155:1": nil, "eip155:2": limit(source.Exhausted), "eip155:3": errors.New("node: timeout\n\x1b[31m and more")})
	if len(found) != 1 || found[0].key != (key{notify.NetworkNotReady, "eip155:3"}) || !found[0].bad {
		t.Fatalf("found %+v, want the network whose node is away", found)
	}
	if want := "no payment is taken on the network eip155:3: node: timeout [31m and more"; found[0].told.What != want {
		t.Errorf("it says %q, want %q", found[0].told.What, want)
	}
}
