package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/outage"
	"market/internal/postgres/pgtest"
)

// none are canaries of which one takes connections; silent are some that have not, twice in ten seconds.
var (
	none   = outage.Soundings{}
	silent = outage.Soundings{Failed: true, Before: 5 * time.Second}
)

// B136: when our own way out breaks, the failure that shows it is struck no more, and the strikes before it fall.
func TestGuard_TheFailureThatMakesAnOutageKnownIsExcusedAndSoAreThoseBefore(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 5, 3)
	s.failsOf(t, s.shops[:4]...)
	if told := s.tick(t, none); len(told) != 0 {
		t.Errorf("four of four services fail, and the operator is told %+v", told)
	}
	s.wantBlame(t, "four services", blame{Strikes: 4, Cooldowns: 4, Services: 4})

	fifth := s.shops[4].trial(t).walkedBy(s.owner).failed()
	written, err := s.recorder.persist(t.Context(), fifth)
	if err != nil {
		t.Fatal(err)
	}
	if written.Party != call.Platform || written.Reason != call.Upstream5xx || !strings.Contains(written.Detail, "outage of ours") {
		t.Errorf("the fifth is answered as %s by %s: %s", written.Reason, written.Party, written.Detail)
	}
	s.wantBlame(t, "at the fifth", blame{Strikes: 4, Cooldowns: 4, Services: 4, Excused: 1})
	all := s.outages(t)
	if len(all) != 1 || !all[0].Holds() || all[0].Cause != outage.Services || all[0].Replica != s.owner ||
		all[0].Failing != (outage.Failing{Asked: 5, Failed: 5, Providers: 3}) {
		t.Fatalf("outages %+v, want one of this replica, by 5 of 5 services of 3 providers", all)
	}

	told := s.tick(t, none)
	if len(told) != 1 || told[0].Over || told[0].Outage.ID != all[0].ID || !strings.Contains(told[0].Text, "5 of the 5 services") {
		t.Errorf("the operator is told %+v, want once that it holds", told)
	}
	if open := s.guard.Open(); len(open) != 1 || open[0].ID != all[0].ID || !s.guard.Suspects() {
		t.Errorf("open outages %+v, want the one", open)
	}
	s.wantBlame(t, "after a tick", blame{Excused: 5})
	if told := s.tick(t, none); len(told) != 0 {
		t.Errorf("told again: %+v", told)
	}
	s.failsOf(t, s.shops...)
	s.wantBlame(t, "while it holds", blame{Excused: 10})
}

func TestGuard_WhatIsNoOutageStrikes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		services, providers int
		spoil               func(t *testing.T, s street)
		strikes             int
	}{
		"four services": {4, 4, func(t *testing.T, s street) { s.failsOf(t, s.shops...) }, 4},
		"twenty services of one provider, and two more of others": {22, 22, func(t *testing.T, s street) {
			if _, err := s.db.Exec(t.Context(), `UPDATE services SET base_url = 'https://' || slug || '.one.example' WHERE slug <> 'shop-0'`); err != nil {
				t.Fatal(err)
			}
			s.failsOf(t, s.shops...)
		}, 22},
		"five of eleven that were asked": {11, 11, func(t *testing.T, s street) {
			for _, shop := range s.shops[5:] {
				s.record(t, shop.trial(t).walkedBy(s.owner).served())
			}
			s.failsOf(t, s.shops[:5]...)
		}, 5},
		"listings that have served nobody": {4, 4, func(t *testing.T, s street) {
			s.failsOf(t, s.shops...)
			for _, slug := range []string{"dead-1", "dead-2", "dead-3"} {
				s.failsOf(t, s.open(t, slug, "https://"+slug+".example"))
			}
		}, 7},
		"failures of more than a minute": {6, 6, func(t *testing.T, s street) {
			for _, shop := range s.shops {
				s.failsOf(t, shop)
				pgtest.Shift(t, s.db, 15*time.Second) // five of them never fall into one minute
			}
		}, 6},
		"calls of our own": {5, 5, func(t *testing.T, s street) {
			for _, shop := range s.shops[:4] {
				d := shop.trial(t).walkedBy(s.owner)
				d.Origin = call.Own
				s.record(t, d.failed())
			}
			s.failsOf(t, s.shops[4])
		}, 1},
		"what the services turned down": {5, 5, func(t *testing.T, s street) {
			for _, shop := range s.shops[:4] {
				s.record(t, shop.trial(t).walkedBy(s.owner).end(call.RejectedByService, ""))
			}
			s.failsOf(t, s.shops[4])
		}, 1},
		"calls that we gave up": {5, 5, func(t *testing.T, s street) {
			for _, shop := range s.shops[:4] {
				s.record(t, shop.trial(t).walkedBy(s.owner).end(call.Interrupted, ""))
			}
			s.failsOf(t, s.shops[4])
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStreet(t, tt.services, tt.providers)
			tt.spoil(t, s)
			if told := s.tick(t, none); len(told) != 0 || len(s.outages(t)) != 0 {
				t.Errorf("outages %+v, told %+v", s.outages(t), told)
			}
			var open int
			if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM strikes WHERE state = 'open'`).Scan(&open); err != nil || open != tt.strikes {
				t.Errorf("%d open strikes, %v; want %d", open, err, tt.strikes)
			}
		})
	}
}

// What our resolver or our network refuses is no service's doing and moves nothing, and shows the outage all the same.
func TestGuard_FailuresOfOurOwnMakeAnOutageKnown(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 5, 5)
	for i, shop := range s.shops[:4] {
		reason := []call.Reason{call.EgressDown, call.LocalError}[i%2]
		s.record(t, shop.trial(t).walkedBy(s.owner).end(reason, ""))
	}
	s.failsOf(t, s.shops[4])
	s.wantBlame(t, "at the fifth", blame{Excused: 1})
}

func TestGuard_TicksSeeWhatNoFailureOfAServiceShows(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 5, 5)
	for _, shop := range s.shops {
		s.record(t, shop.trial(t).walkedBy(s.owner).end(call.EgressDown, ""))
	}
	if told := s.tick(t, none); len(told) != 1 || told[0].Outage.Replica != s.owner {
		t.Errorf("told %+v, want an outage of this replica", told)
	}
}

// One replica that cannot get out is no outage of the others: it strikes nobody, and they strike who fails.
func TestGuard_OneReplicaThatIsDownIsNoOutageOfTheOthers(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 6, 3)
	other := uuid.Must(uuid.NewV7())
	for _, shop := range s.shops[1:] {
		s.record(t, shop.trial(t).walkedBy(other).served())
	}
	s.failsOf(t, s.shops...) // each that is asked here
	s.tick(t, none)
	s.record(t, s.shops[0].trial(t).walkedBy(other).failed())
	all := s.outages(t)
	if len(all) != 1 || all[0].Replica != s.owner {
		t.Fatalf("outages %+v, want one of this replica alone", all)
	}
	s.wantBlame(t, "a failure that the other replica met", blame{Strikes: 1, Cooldowns: 1, Services: 1, Excused: 6})
	if told, err := s.guardOf(other).Tick(t.Context(), none); err != nil || len(told) != 0 || s.guardOf(other).Suspects() {
		t.Errorf("the other replica tells %+v, %v", told, err)
	}
	s.wantBlame(t, "after its tick", blame{Strikes: 1, Cooldowns: 1, Services: 1, Excused: 6})
}

func TestGuard_WhatEachReplicaSeesTooLittleOfIsAnOutageOfTheFleet(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 6, 3)
	other := uuid.Must(uuid.NewV7())
	s.failsOf(t, s.shops[:3]...)
	for _, shop := range s.shops[3:] {
		s.record(t, shop.trial(t).walkedBy(other).failed())
	}
	all := s.outages(t)
	if len(all) != 1 || all[0].Replica != (uuid.UUID{}) {
		t.Fatalf("outages %+v, want one of the fleet", all)
	}
	s.tick(t, none)
	s.wantBlame(t, "after a tick", blame{Excused: 6})
}

func TestGuard_SilentCanariesAreAnOutageOfTheirReplica(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 2, 2)
	s.failsOf(t, s.shops[0])
	if told := s.tick(t, outage.Soundings{Failed: true}); len(told) != 0 {
		t.Errorf("one round of canaries, and told %+v", told)
	}
	if told := s.tick(t, silent); len(told) != 1 || told[0].Outage.Cause != outage.Canaries || !strings.Contains(told[0].Text, "MARKET_CANARIES") {
		t.Errorf("told %+v, want an outage by the canaries", told)
	}
	s.wantBlame(t, "after the second round", blame{Excused: 1})
	s.failsOf(t, s.shops[1])
	s.record(t, s.shops[0].trial(t).walkedBy(uuid.Must(uuid.NewV7())).failed())
	s.wantBlame(t, "a failure here, and one elsewhere", blame{Strikes: 1, Cooldowns: 1, Services: 1, Excused: 2})
}

func TestGuard_AnOutageEndsAMinuteAfterItHeldLastAndIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 5, 3)
	s.failsOf(t, s.shops...)
	s.tick(t, none)
	late := s.shops[0].trial(t).walkedBy(s.owner).failed() // is asked while it holds
	pgtest.Shift(t, s.db, time.Minute-time.Microsecond)
	if told := s.tick(t, none); len(told) != 0 {
		t.Errorf("told %+v before the minute is over", told)
	}
	// The failures have left the window just now, and the condition held a microsecond ago.
	pgtest.Shift(t, s.db, time.Minute)
	if told := s.tick(t, none); len(told) != 1 || !told[0].Over {
		t.Errorf("told %+v, want that it is over", told)
	}
	if told := s.tick(t, none); len(told) != 0 || len(s.guard.Open()) != 0 {
		t.Errorf("told %+v, and %+v are open", told, s.guard.Open())
	}
	if all := s.outages(t); len(all) != 1 || all[0].Holds() || all[0].Settled {
		t.Errorf("outages %+v, want the one, over and not settled", all)
	}
	pgtest.Shift(t, s.db, time.Minute)
	s.record(t, late)
	s.wantBlame(t, "what was asked while it held", blame{Excused: 6})
	s.failsOf(t, s.shops[1])
	s.wantBlame(t, "what was asked after it", blame{Strikes: 1, Cooldowns: 1, Services: 1, Excused: 6})
	s.tick(t, none)
	if all := s.outages(t); len(all) != 1 || !all[0].Settled {
		t.Errorf("outages %+v, want the one, settled", all)
	}
	s.wantBlame(t, "after it is settled", blame{Strikes: 1, Cooldowns: 1, Services: 1, Excused: 6})
}

// A replica that dies takes its canaries along; others see that nothing keeps its outage up.
func TestGuard_TheOutageOfAReplicaThatDiedEndsToo(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 1, 1)
	s.tick(t, silent)
	pgtest.Shift(t, s.db, time.Minute)
	told, err := s.guardOf(uuid.Must(uuid.NewV7())).Tick(t.Context(), none)
	if err != nil || len(told) != 1 || !told[0].Over {
		t.Errorf("another replica tells %+v, %v; want that it is over", told, err)
	}
}
