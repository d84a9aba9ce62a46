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
	"market/internal/postgres/pgtest"
)

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
func TestGuard_ProvidersAreToldFromTheBaseURL(t *testing.T) {
	t.Parallel()
	s := newStreet(t, 6, 2)
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
