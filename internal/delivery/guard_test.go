package delivery

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
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
			if _, err := s.db.Exec(t.Context(), `UPDATE services SET provider = 'one.example' WHERE slug <> 'shop-0'`); err != nil {
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

// B136: a service that an outage of ours took off the shelf is put back when the outage is known.
func TestGuard_WhatAnOutageDelistedIsPutBack(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 5, 3)
	for n := range 3 {
		if n > 0 {
			pgtest.Shift(t, s.db, rest)
		}
		s.failsOf(t, s.shops[0])
	}
	s.wantBlame(t, "three failures", blame{Strikes: 3, Cooldowns: 1, Delisted: 1, Services: 3})
	s.failsOf(t, s.shops[1:]...)
	s.tick(t, none)
	s.wantBlame(t, "after the outage is known", blame{Excused: 7})
	var cause catalog.Cause
	var by, reason string
	if err := s.db.QueryRow(t.Context(), `SELECT state_cause, state_by, state_reason FROM services WHERE id = $1`, s.shops[0].service.ID).Scan(&cause, &by, &reason); err != nil {
		t.Fatal(err)
	}
	if by != catalog.System.Name || !strings.Contains(reason, "outage of the marketplace itself") {
		t.Errorf("it is back by %s for %s: %s", by, cause, reason)
	}
}

func TestGuard_AStrikeFromBeforeTheOutageStays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before time.Duration // the strike, and the outage that is known later
		falls  bool
	}{
		"just outside of what it reaches back to": {3*time.Minute + time.Microsecond, false},
		"where it reaches back to":                {3 * time.Minute, true},
		"just inside":                             {3*time.Minute - time.Microsecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStreet(t, 6, 3)
			s.failsOf(t, s.shops[0])
			pgtest.Shift(t, s.db, tt.before)
			s.failsOf(t, s.shops[1:]...)
			s.tick(t, none)
			want := blame{Strikes: 1, Services: 1, Excused: 5}
			if tt.falls {
				want = blame{Excused: 6}
			}
			s.wantBlame(t, "after the outage is known", want)
		})
	}
}

// The failure of before the outage proves its strike, whatever joined it since.
func TestGuard_AStrikeWithOtherEvidenceStays(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 6, 3)
	joins := s.shops[0].trial(t).walkedBy(s.owner).failed()
	s.failsOf(t, s.shops[0])
	pgtest.Shift(t, s.db, 4*time.Minute)
	s.record(t, joins)
	s.failsOf(t, s.shops[1:]...)
	s.tick(t, none)
	// The rest that the last one began ends: it is none of the service's doing.
	s.wantBlame(t, "after the outage is known", blame{Strikes: 1, Services: 1, Excused: 6})
	s.wantParty(t, "what joined in the minute of the outage", joins.Call, call.Platform)
}

// A guard finds a strike that rests on nothing, and waits for the row of its service: a failure that another replica met joins it meanwhile.
func TestGuard_AStrikeStaysThatGotOtherEvidenceAfterItWasFound(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 1, 1)
	joins := s.shops[0].trial(t).walkedBy(uuid.Must(uuid.NewV7())).failed()
	s.failsOf(t, s.shops[0])
	var strike uuid.UUID
	if err := s.db.QueryRow(t.Context(), `SELECT id FROM strikes`).Scan(&strike); err != nil {
		t.Fatal(err)
	}
	s.record(t, joins)
	s.tick(t, silent)
	s.wantBlame(t, "before it decides", blame{Strikes: 1, Cooldowns: 1, Services: 1, Excused: 1})
	_, err := s.guard.review.Void(t.Context(), strike, catalog.System, "as it was found")
	wantConflict(t, "void it", err, "evidence that no outage excuses")
	s.wantBlame(t, "after it decided", blame{Strikes: 1, Cooldowns: 1, Services: 1, Excused: 1})
}

// What an outage excuses may be more than one tick can do, and an outage may hold for days: each failure is looked at once, what is recent again, and
// everything once more before the outage counts as settled.
func TestGuard_ItLooksAtEverythingOnceAndOnceMoreAfterTheEndInBatches(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 2, 2)
	s.guard.batch, s.guard.batches = 2, 1
	s.failsOf(t, s.shops[0], s.shops[0], s.shops[0], s.shops[0], s.shops[0])
	late := s.shops[1].trial(t).walkedBy(s.owner).failed()
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := s.recorder.enforce(t.Context(), tx, late); err != nil {
		t.Fatal(err)
	}
	for tick, excused := range []int{2, 4, 5, 5} {
		s.tick(t, silent)
		if got := s.excused(t); got != excused {
			t.Errorf("after tick %d: %d failures are excused, want %d", tick, got, excused)
		}
	}
	pgtest.Shift(t, s.db, passRecent+time.Microsecond)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.tick(t, silent)
	s.wantBlame(t, "while it holds, what is older than recent", blame{Strikes: 1, Services: 1, Excused: 5})
	for range 2 {
		pgtest.Shift(t, s.db, time.Minute)
		s.tick(t, none) // the first one ends it
	}
	for n := 0; !s.outages(t)[0].Settled; n++ {
		if n == 5 {
			t.Fatal("it never counts as settled")
		}
		s.tick(t, none)
	}
	s.wantBlame(t, "when it is settled", blame{Excused: 6})
}

// excused counts the failures that an outage excuses.
func (s street) excused(t *testing.T) (n int) {
	t.Helper()
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE excused_by IS NOT NULL`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A failure that is only flagged opens no strike, so that no void ends the rest that it began.
func TestGuard_ARestThatAFlaggedFailureBeganEndsWhenItIsExcused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		since func(t *testing.T, s street) // what else came of the service
		want  blame
	}{
		"nothing else": {func(*testing.T, street) {}, blame{Excused: 1}},
		"a failure that another replica met": {func(t *testing.T, s street) {
			s.record(t, s.shops[0].trial(t).walkedBy(uuid.Must(uuid.NewV7())).failed())
		}, blame{Strikes: 1, Cooldowns: 1, Services: 1, Excused: 1}},
	} {
		for _, reason := range []call.Reason{call.UpstreamThrottled, call.UpstreamTooLarge} {
			t.Run(name+" after "+string(reason), func(t *testing.T) {
				t.Parallel()
				s := newStreet(t, 1, 1)
				s.record(t, s.shops[0].trial(t).walkedBy(s.owner).end(reason, ""))
				s.wantBlame(t, "before the outage is known", blame{Cooldowns: 1, Services: 1})
				tt.since(t, s)
				s.tick(t, silent)
				s.wantBlame(t, "after it is known", tt.want)
			})
		}
	}
}

// A strike that commits beside the beginning of an outage, by a transaction that could not see it, falls like those before.
func TestGuard_AStrikeThatCommitsBesideTheBeginningFalls(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 6, 3)
	beside := s.shops[5].trial(t).walkedBy(s.owner).failed()
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if d, err := s.recorder.enforce(t.Context(), tx, beside); err != nil || d.Party != call.Service {
		t.Fatalf("it ends by %s, %v: there is no outage yet", d.Party, err)
	}
	s.failsOf(t, s.shops[:5]...)
	s.tick(t, none)
	s.wantBlame(t, "before it commits", blame{Excused: 5})
	pgtest.Shift(t, s.db, 2*time.Minute)
	s.tick(t, none)
	s.tick(t, none) // it is over
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantBlame(t, "when it has committed", blame{Strikes: 1, Services: 1, Excused: 5})
	s.tick(t, none)
	s.wantBlame(t, "after another tick", blame{Excused: 6})
}

// B136: however many see an outage at once, it is one, and each strike falls once.
func TestGuard_ReplicasThatSeeItAtOnceMakeOneOutage(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 10, 5)
	var wg sync.WaitGroup
	for _, shop := range s.shops {
		// By as many replicas, so that it is the fleet's.
		d := shop.trial(t).walkedBy(uuid.Must(uuid.NewV7())).failed()
		wg.Go(func() {
			if err := s.recorder.Record(t.Context(), d); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var (
		mu   sync.Mutex
		told []Telling
	)
	for range 4 {
		guard := s.guardOf(uuid.Must(uuid.NewV7()))
		wg.Go(func() {
			for range 3 {
				more, err := guard.Tick(t.Context(), none)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				told = append(told, more...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if all := s.outages(t); len(all) != 1 || all[0].Replica != (uuid.UUID{}) {
		t.Errorf("outages %+v, want one of the fleet", all)
	}
	if len(told) != 1 {
		t.Errorf("told %+v, want one of them once", told)
	}
	s.wantBlame(t, "after all", blame{Excused: 10})
	var voids int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'void'`).Scan(&voids); err != nil {
		t.Fatal(err)
	}
	var strikes int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM strikes WHERE state = 'voided'`).Scan(&strikes); err != nil || voids != strikes {
		t.Errorf("%d strikes are void, by %d decisions, %v", strikes, voids, err)
	}
}

// What an outage excuses is held neither against the service, nor against whoever paid for it.
func TestGuard_WhatIsExcusedCountsAgainstNobody(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 4, 4)
	s.failsOf(t, s.shops...)
	shop := s.shelf // it has served somebody, too
	s.record(t, shop.trial(t).served())
	limit := RefundPolicy{Count: 2, Window: 10 * time.Minute}
	var first Delivery
	for n := range 2 {
		d := shop.asked(t).walkedBy(s.owner).failed()
		if n == 0 {
			d.Origin = call.External
			first = d
		}
		s.record(t, d)
		if n == 0 {
			s.tick(t, none)
			pgtest.Shift(t, s.db, time.Second)
		}
	}
	s.wantParty(t, "a paid call", first.Call, call.Platform)
	if got, err := limit.refundRest(t.Context(), s.db, first.Payer, shop.endpoint.ID); err != nil || got != 0 {
		t.Errorf("its payer is refused for %s, %v", got, err)
	}
	tallies, err := talliesOfOne(t.Context(), s.db, shop.service.ID)
	if err != nil || tallies[0].Failed != 0 || tallies[0].Elsewhere != 2 {
		t.Errorf("the record says %+v, %v; want both not delivered, and not by the service", tallies, err)
	}
	var refunds int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM refunds WHERE state = 'owed'`).Scan(&refunds); err != nil || refunds != 2 {
		t.Errorf("%d refunds are owed, %v; want both", refunds, err)
	}
}

func TestRecorder_Persist_ALostCommitIsAnsweredAsItStands(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 1, 1)
	s.tick(t, silent)
	d := s.shops[0].trial(t).walkedBy(s.owner).failed()
	s.record(t, d) // and its answer is lost
	written, err := s.recorder.persist(t.Context(), d)
	if err != nil || written.Party != call.Platform || written.Excused == (uuid.UUID{}) {
		t.Errorf("answered by %s, excused by %s, %v", written.Party, written.Excused, err)
	}
}

// A program from before keeps no provider: it is told from where the service is.
func TestGuard_ProvidersOfOlderRowsAreToldFromTheBaseURL(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 6, 2)
	if _, err := s.db.Exec(t.Context(), `UPDATE services SET provider = ''`); err != nil {
		t.Fatal(err)
	}
	s.failsOf(t, s.shops...)
	if all := s.outages(t); len(all) != 0 {
		t.Errorf("outages %+v: six services of two providers", all)
	}
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE services SET base_url = 'https://third.example' WHERE slug = 'shop-0'`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.tick(t, none); len(s.outages(t)) != 1 {
		t.Error("no outage, of six services of three providers")
	}
}
