package delivery

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
)

func TestRecorder_Record_TheLimitDelistsWithItsEvidence(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	underWay := s.asked(t).failed() // it comes back when all is over
	var calls []call.ID
	for n := 1; n <= policy.Limit; n++ {
		calls = append(calls, s.fail(t).Call)
		want := world{Deliveries: n, OpenStrikes: n, Evidence: n, Cooldowns: 1, Refunds: n, Jobs: n}
		if n == policy.Limit {
			want.Service = catalog.Delisted
		}
		s.want(t, "after a failure", want)
		pgtest.Shift(t, s.db, rest)
	}
	var reason string
	if err := s.db.QueryRow(t.Context(), `SELECT state_reason FROM services WHERE id = $1`, s.service.ID).Scan(&reason); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(reason, "3 strikes") {
		t.Errorf("delisted for %q, want it to say 3 strikes", reason)
	}
	queue, err := s.recorder.StrikesOfAll(t.Context(), 0, 10)
	if err != nil || len(queue.Strikes) != policy.Limit {
		t.Fatalf("%d open strikes, %v; want %d", len(queue.Strikes), err, policy.Limit)
	}
	for i, strike := range queue.Strikes {
		if strike.Service != s.service.ID || strike.Spread.Evidence != 1 || len(strike.Calls) != 1 || strike.Calls[0] != calls[i] {
			t.Errorf("strike %d = %+v, want call %s as its evidence", i, strike, calls[i])
		}
	}
	s.record(t, underWay)
	if w := s.world(t); w.Service != catalog.Delisted || w.OpenStrikes != policy.Limit || w.Evidence != policy.Limit+1 || w.Refunds != policy.Limit+1 {
		t.Errorf("after a late failure: %+v, want one more delivery as evidence of the last strike, refunded", w)
	}
}

func TestRecorder_Record_AStrikeThatLeftTheWindowDoesNotDelist(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wait time.Duration // from the first strike to the third
		want catalog.State
	}{
		"just inside the window":  {policy.Window - time.Microsecond, catalog.Delisted},
		"exactly a window later":  {policy.Window, catalog.Listed},
		"just outside the window": {policy.Window + time.Microsecond, catalog.Listed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.fail(t)
			pgtest.Shift(t, s.db, rest)
			s.fail(t)
			pgtest.Shift(t, s.db, tt.wait-rest)
			s.fail(t)
			if got := s.world(t).Service; got != tt.want {
				t.Errorf("the service is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestRecorder_Record_ConcurrentFailuresOfOneHiccupAreOneStrike(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const failures = 50
	all := make([]Delivery, failures)
	for i := range all {
		all[i] = s.asked(t).failed()
	}
	var wg sync.WaitGroup
	for _, d := range all {
		wg.Go(func() {
			if err := s.recorder.Record(t.Context(), d); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.want(t, "after the hiccup", world{Deliveries: failures, OpenStrikes: 1, Evidence: failures, Cooldowns: 1, Refunds: failures, Jobs: failures})
	if left := s.rests(t); left != rest {
		t.Errorf("the service rests for %s, want %s", left, rest)
	}
}

// A cooldown is one row a service, so writing it makes failures wait for each other by itself. Without one the lock alone does.
func TestRecorder_Record_WithoutACooldownConcurrentFailuresStillSeeEachOther(t *testing.T) {
	t.Parallel()
	for range 3 {
		s := newShelf(t)
		alone := policy
		alone.Fold = 0
		recorder := s.counting(s.recorder.jobs, alone, 0)
		all := make([]Delivery, policy.Limit)
		for i := range all {
			all[i] = s.asked(t).failed()
		}
		var wg sync.WaitGroup
		for _, d := range all {
			wg.Go(func() {
				if err := recorder.Record(t.Context(), d); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n := policy.Limit
		s.want(t, "after as many failures as delist", world{Deliveries: n, OpenStrikes: n, Evidence: n, Refunds: n, Jobs: n, Service: catalog.Delisted})
	}
}

func TestRecorder_Record_SuccessesAndFailuresAtOnceAreAllRecorded(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const rounds, each = 5, 8
	for range rounds {
		s.record(t, s.trial(t).failed()) // a strike that a success clears and a failure joins
		pgtest.Shift(t, s.db, rest)
		var all []Delivery
		for range each {
			joins := s.asked(t).failed()
			joins.AskedAt = joins.AskedAt.Add(-time.Microsecond)
			all = append(all, s.asked(t).served(), joins)
		}
		var wg sync.WaitGroup
		for _, d := range all {
			wg.Go(func() {
				if err := s.recorder.Record(t.Context(), d); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		pgtest.Shift(t, s.db, rest)
	}
	if w := s.world(t); w.Deliveries != rounds*(2*each+1) || w.Refunds != rounds*each {
		t.Errorf("%+v, want %d deliveries and %d refunds", w, rounds*(2*each+1), rounds*each)
	}
}

// slowJobs is a queue that fails some times before it works.
type slowJobs struct {
	Jobs
	failures int
}

func (j *slowJobs) InsertTx(ctx context.Context, tx pgx.Tx, args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertResult, error) {
	if j.failures > 0 {
		j.failures--
		return nil, errors.New("queue is full")
	}
	return j.Jobs.InsertTx(ctx, tx, args, opts)
}

func TestRecorder_Persist_TriesAgainUntilTheOutcomeStands(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	slow := NewRecorder(s.db, &slowJobs{s.recorder.jobs, 1}, policy, rest, time.Hour)
	if _, err := slow.persist(t.Context(), s.asked(t).failed()); err != nil {
		t.Errorf("after one trouble: %v", err)
	}
	s.want(t, "after one trouble", world{Deliveries: 1, OpenStrikes: 1, Evidence: 1, Cooldowns: 1, Refunds: 1, Jobs: 1})
}

func TestRecorder_Persist_KnowsItsOwnLostCommitFromAnothersOutcome(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.asked(t).failed()
	s.record(t, d) // and its answer is lost
	if _, err := s.recorder.persist(t.Context(), d); err != nil {
		t.Errorf("the same delivery again: %v", err)
	}
	d.ID = uuid.Must(uuid.NewV7())
	if _, err := s.recorder.persist(t.Context(), d); !errors.Is(err, payment.ErrMoved) {
		t.Errorf("another delivery of that call: %v, want %v", err, payment.ErrMoved)
	}
	s.want(t, "after all", world{Deliveries: 1, OpenStrikes: 1, Evidence: 1, Cooldowns: 1, Refunds: 1, Jobs: 1})
}
