package delivery

import (
	"testing"
	"time"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

// needing returns the shelf with a recorder that delists by evidence of so many networks only.
func (s shelf) needing(sources int) shelf {
	p := policy
	p.Sources = sources
	s.recorder = s.counting(s.recorder.jobs, p, rest)
	return s
}

// A caller that makes a healthy service fail is one caller.
func TestRecorder_Record_EvidenceOfTooFewSourcesHoldsTheServiceInsteadOfDelistingIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sources int
		callers []string
		want    catalog.State
		found   int
	}{
		"one source where any will do":              {1, []string{"192.0.2.1", "192.0.2.1", "192.0.2.1"}, catalog.Delisted, 1},
		"one address where two are needed":          {2, []string{"192.0.2.1", "192.0.2.1", "192.0.2.1"}, catalog.Held, 1},
		"one network where two are needed":          {2, []string{"192.0.2.0", "192.0.2.1", "192.0.2.255"}, catalog.Held, 1},
		"the next network is another":               {2, []string{"192.0.2.255", "192.0.2.255", "192.0.3.0"}, catalog.Delisted, 2},
		"more networks than are needed":             {2, []string{"192.0.2.1", "198.51.100.1", "203.0.113.1"}, catalog.Delisted, 3},
		"one too few where three are needed":        {3, []string{"192.0.2.1", "198.51.100.1", "198.51.100.1"}, catalog.Held, 2},
		"one network of IPv6, however many of it":   {2, []string{"2001:db8:7::1", "2001:db8:7:1::1", "2001:db8:7:ffff::1"}, catalog.Held, 1},
		"two networks of IPv6":                      {2, []string{"2001:db8:7::1", "2001:db8:7::1", "2001:db8:8::1"}, catalog.Delisted, 2},
		"below the limit, whatever it comes from":   {2, []string{"192.0.2.1", "192.0.2.1"}, catalog.Listed, 0},
		"a source that the database knows from old": {2, []string{"192.0.2.1", "203.0.113.1", "192.0.2.1"}, catalog.Delisted, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t).needing(tt.sources)
			for _, from := range tt.callers {
				s.record(t, s.asked(t).called(from).failed())
				pgtest.Shift(t, s.db, rest)
			}
			if got := s.world(t); got.Service != tt.want || got.Refunds != len(tt.callers) {
				t.Errorf("the service is %s with %d refunds, want %s", got.Service, got.Refunds, tt.want)
			}
			found := s.strikes(t)
			if tt.want == catalog.Listed {
				if len(found.Delistings) != 0 {
					t.Errorf("%+v, want none", found.Delistings)
				}
				return
			}
			if len(found.Delistings) != 1 {
				t.Fatalf("%+v, want one", found.Delistings)
			}
			d := found.Delistings[0]
			verdict := map[catalog.State]strikes.Verdict{catalog.Delisted: strikes.Delists, catalog.Held: strikes.Holds}[tt.want]
			at := s.opened.Add(time.Duration(len(tt.callers)-1) * rest)
			if d.Verdict != verdict || d.From != "listed" || d.Limit != 3 || d.Window != policy.Window || d.Needed != tt.sources || d.Open != 3 ||
				d.Sources != tt.found || d.Deciding != found.Strikes[2].ID || !d.At.Equal(at) {
				t.Errorf("%+v, want %s by %d of %d networks, decided by %s at %s", d, verdict, tt.found, tt.sources, found.Strikes[2].ID, at)
			}
		})
	}
}

func TestRecorder_Record_AHoldSaysWhy(t *testing.T) {
	t.Parallel()
	s := newShelf(t).needing(2)
	for range policy.Limit {
		s.fail(t)
		pgtest.Shift(t, s.db, rest)
	}
	events, err := catalog.Store{}.Events(t.Context(), s.db, s.service.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := catalog.Event{From: catalog.Listed, Cause: catalog.CauseReview, By: catalog.Recorder, To: catalog.Held,
		Reason: "3 strikes within 24 h, with evidence from 1 of the 2 networks that delisting takes", At: events[0].At}
	if events[0] != want {
		t.Errorf("%+v, want %+v", events[0], want)
	}
	if next := s.strikes(t).Summary.Next; next != "it is held and gets no calls" {
		t.Errorf("next: %q", next)
	}
}

// Which of two callers is recorded first decides nothing: a failure that joins the third strike brings the network that was missing.
func TestRecorder_Record_AJoinedFailureOfAnotherSourceDelistsWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := newShelf(t).needing(2)
	for range policy.Limit - 1 {
		s.fail(t)
		pgtest.Shift(t, s.db, rest)
	}
	same, another := s.asked(t).failed(), s.asked(t).called("203.0.113.1").failed()
	s.fail(t)
	s.record(t, same)
	if got := s.world(t).Service; got != catalog.Held {
		t.Fatalf("after a second failure of the same source: %s, want held", got)
	}
	s.record(t, another)
	if got := s.world(t); got.Service != catalog.Delisted || got.OpenStrikes != policy.Limit {
		t.Errorf("after one of another source: %+v, want delisted for %d strikes", got, policy.Limit)
	}
	if d := s.strikes(t).Delistings; len(d) != 2 || d[0].Verdict != strikes.Delists || d[0].From != "held" || d[1].Verdict != strikes.Holds {
		t.Errorf("%+v, want a hold and then a delisting from there", d)
	}
}

// Off the shelf for a while it is held by nothing more, and delisted all the same where the evidence allows that.
func TestRecorder_Record_StrikesOfASuspendedServiceAreJudgedByTheirSources(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]catalog.State{"192.0.2.1": catalog.Suspended, "203.0.113.1": catalog.Delisted} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t).needing(2)
			for range policy.Limit - 1 {
				s.fail(t)
				pgtest.Shift(t, s.db, rest)
			}
			underWay := s.asked(t).called(from).failed()
			moved, err := catalog.Store{}.Move(t.Context(), s.db, s.service.ID, catalog.Change{Cause: catalog.CauseSuspension, By: catalog.AdminToken, Reason: "for the test"})
			if err != nil || !moved {
				t.Fatal(moved, err)
			}
			s.record(t, underWay)
			if got := s.world(t).Service; got != want {
				t.Errorf("%s, want %s", got, want)
			}
			if n, wantRows := len(s.strikes(t).Delistings), map[catalog.State]int{catalog.Delisted: 1}[want]; n != wantRows {
				t.Errorf("%d delistings, want %d", n, wantRows)
			}
		})
	}
}

// Evidence of a strike that was cleared, or that left the window, is no evidence of those that count.
func TestRecorder_Record_OnlyCountingStrikesHaveSources(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"cleared":            `UPDATE strikes SET state = 'cleared', cleared_at = market_now(), cleared_by = $1`,
		"out of the window":  `UPDATE strikes SET opened_at = opened_at - interval '25 h' WHERE $1::uuid IS NOT NULL`,
		"still one of those": `UPDATE strikes SET state = 'open' WHERE $1::uuid IS NOT NULL`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t).needing(2)
			elsewhere := s.asked(t).called("203.0.113.1").failed()
			s.record(t, elsewhere)
			s.write(t, change, elsewhere.ID)
			for range policy.Limit {
				pgtest.Shift(t, s.db, rest)
				if s.world(t).Service == catalog.Listed {
					s.fail(t)
				}
			}
			want := map[bool]catalog.State{true: catalog.Delisted, false: catalog.Held}[name == "still one of those"]
			if got := s.world(t).Service; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// The row of a delisting is written with it or not at all, and only where there was one.
func TestRecorder_Record_OneDelistingHasOneRow(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	underWay := []Delivery{s.asked(t).failed(), s.asked(t).failed()}
	for range policy.Limit {
		s.fail(t)
		pgtest.Shift(t, s.db, rest)
	}
	for _, d := range underWay {
		d.AskedAt = s.opened.Add(time.Hour) // an incident of its own
		s.record(t, d)
	}
	if d := s.strikes(t).Delistings; len(d) != 1 || d[0].Open != policy.Limit {
		t.Errorf("%+v, want the one delisting by %d strikes", d, policy.Limit)
	}
}
