package delivery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	"market/internal/refund"
	"market/internal/strikes"
)

func TestRecorder_Record_EveryOutcomeEndsInItsState(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, s shelf) Delivery
		state   call.State
		refunds int
	}{
		"served": {func(t *testing.T, s shelf) Delivery { return s.asked(t).served() }, call.StateServed, 0},
		"refused by the service": {func(t *testing.T, s shelf) Delivery {
			return s.asked(t).end(call.RejectedByService, "status 422")
		}, call.StateRefused, 1},
		"failed": {func(t *testing.T, s shelf) Delivery { return s.asked(t).failed() }, call.StateFailed, 1},
		"refused by the cooldown": {func(t *testing.T, s shelf) Delivery {
			s.record(t, s.trial(t).failed())
			d, _ := s.paid(t)
			return d.end(call.InCooldown, "")
		}, call.StateCooldownRefused, 1},
		"withdrawn": {func(t *testing.T, s shelf) Delivery {
			if err := s.delist(t.Context()); err != nil {
				t.Fatal(err)
			}
			d, _ := s.paid(t)
			return d.end(call.Withdrawn, "")
		}, call.StateFailed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			d := tt.prepare(t, s)
			s.record(t, d)
			if state := s.state(t, d.Call); state != tt.state {
				t.Errorf("call is %s, want %s", state, tt.state)
			}
			if w := s.world(t); w.Refunds != tt.refunds || w.Jobs != tt.refunds {
				t.Errorf("%d refunds, %d jobs; want %d of each", w.Refunds, w.Jobs, tt.refunds)
			}
			got, err := Lookup(t.Context(), s.db, d.Call)
			if err != nil {
				t.Fatal(err)
			}
			if got.Outcome != d.Outcome || got.Reason != d.Reason || got.Party != d.Party || got.Asked != d.asked() || got.Detail != d.Detail {
				t.Errorf("recorded as %+v, want %+v", got, d)
			}
		})
	}
}

func TestRecorder_Record_ASuccessClearsWhatWasRecordedBeforeItWasAsked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		askedAfter time.Duration // the evidence was recorded
		clears     bool
	}{
		"asked just before the evidence was recorded": {-time.Microsecond, false},
		"asked as the evidence was recorded":          {0, false},
		"asked just after the evidence was recorded":  {time.Microsecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			success := s.asked(t).served()
			s.fail(t)
			success.AskedAt = s.opened.Add(tt.askedAfter)
			s.record(t, success)

			want := world{Deliveries: 2, Evidence: 1, Cooldowns: 1, Refunds: 1, Jobs: 1}
			if tt.clears {
				want.ClearedStrikes = 1
			} else {
				want.OpenStrikes = 1
			}
			s.want(t, name, want)
			const clearedBySQL = `SELECT count(*) FROM strikes WHERE cleared_by = $1 AND cleared_at = market_now()`
			var by int
			if err := s.db.QueryRow(t.Context(), clearedBySQL, success.ID).Scan(&by); err != nil || by != want.ClearedStrikes {
				t.Errorf("%d strikes say that this success cleared them, %v; want %d", by, err, want.ClearedStrikes)
			}
		})
	}
}

func TestRecorder_Record_JoinedEvidenceKeepsAStrikeFromAnEarlierSuccess(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	late := s.asked(t).failed()
	s.fail(t)
	pgtest.Shift(t, s.db, rest)
	success := s.asked(t).served() // asked after the strike opened
	pgtest.Shift(t, s.db, time.Second)
	s.record(t, late) // of the same incident, and it is known only now
	s.record(t, success)
	s.want(t, "the evidence is newer than the success", world{Deliveries: 3, OpenStrikes: 1, Evidence: 2, Cooldowns: 1, Refunds: 2, Jobs: 2})
}

// What an admin took off the shelf for a while is struck by the calls that were under way, and relisting it settles its strikes.
func TestRecorder_Record_TheLastStrikeDelistsWhatIsOffTheShelfForAWhile(t *testing.T) {
	t.Parallel()
	for cause, from := range map[catalog.Cause]catalog.State{catalog.CauseSuspension: catalog.Suspended, catalog.CauseReview: catalog.Held} {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			for range policy.Limit - 1 {
				s.fail(t)
				pgtest.Shift(t, s.db, rest)
			}
			last := s.asked(t).failed()
			if moved, err := (catalog.Store{}).Move(t.Context(), s.db, s.service.ID, catalog.Change{Cause: cause, By: catalog.AdminToken, Reason: "a look"}); err != nil || !moved {
				t.Fatalf("moved = %v, %v", moved, err)
			}
			s.record(t, last)
			if got := s.world(t); got.Service != catalog.Delisted || got.OpenStrikes != policy.Limit {
				t.Errorf("the service is %s with %d strikes", got.Service, got.OpenStrikes)
			}
			s.relist(t)
			s.wantStrikes(t, "relisted", strikes.Archived, strikes.Archived, strikes.Archived)
		})
	}
}

func TestRecorder_Record_AFailureIsWrittenWhole(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.fail(t)
	s.want(t, "a failure", world{Deliveries: 1, OpenStrikes: 1, Evidence: 1, Cooldowns: 1, Refunds: 1, Jobs: 1})
	if left := s.rests(t); left != rest {
		t.Errorf("the service rests for %s, want %s", left, rest)
	}
	owed, err := refund.Store{}.Find(t.Context(), s.db, d.Call)
	if err != nil || owed.State != refund.StateOwed || owed.Nonce != d.Refund.Nonce || owed.Payment.Payer != d.Payer {
		t.Errorf("refund = %+v, %v; want it owed to %s", owed, err, d.Payer)
	}
	var job refund.Args
	if err := s.db.QueryRow(t.Context(), `SELECT args FROM river_job WHERE kind = 'refund'`).Scan(&job); err != nil || job.Call != d.Call {
		t.Errorf("the job is about %s, %v; want %s", job.Call, err, d.Call)
	}
}

// noJobs is a queue that takes nothing.
type noJobs struct{ err error }

func (n noJobs) InsertTx(context.Context, pgx.Tx, river.JobArgs, *river.InsertOpts) (*rivertype.JobInsertResult, error) {
	return nil, n.err
}

func TestRecorder_Record_WhereOnePartCannotBeWrittenNothingIs(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	pgtest.Shift(t, s.db, rest)
	s.fail(t)
	pgtest.Shift(t, s.db, rest)
	third := s.asked(t).failed() // would delist
	before := s.world(t)

	errQueue := errors.New("queue is full")
	broken := NewRecorder(s.db, noJobs{errQueue}, policy, rest, time.Hour)
	if err := broken.Record(t.Context(), third); !errors.Is(err, errQueue) {
		t.Fatalf("record says %v, want %v", err, errQueue)
	}
	s.want(t, "without a queue", before)
	for _, table := range []string{"refunds", "cooldowns", "strikes", "strike_deliveries", "deliveries"} {
		if _, err := s.db.Exec(t.Context(), `ALTER TABLE `+table+` RENAME TO gone`); err != nil {
			t.Fatal(err)
		}
		err := s.recorder.Record(t.Context(), third)
		if _, back := s.db.Exec(t.Context(), `ALTER TABLE gone RENAME TO `+table); back != nil {
			t.Fatal(back)
		}
		if err == nil {
			t.Errorf("without %s the outcome is recorded", table)
		}
		s.want(t, "without "+table, before)
		if state := s.state(t, third.Call); state != call.Asked {
			t.Errorf("without %s the call is %s, want it asked", table, state)
		}
	}
	s.record(t, third)
	s.want(t, "with all of it", world{Deliveries: 3, OpenStrikes: 3, Evidence: 3, Cooldowns: 1, Refunds: 3, Jobs: 3, Service: catalog.Delisted})
}

func TestRecorder_Record_ACallThatIsElsewhereIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	pgtest.Shift(t, s.db, rest)
	rested := s.trial(t).AskedAt
	before := s.world(t)
	for name, end := range map[string]func(Delivery) Delivery{"served": Delivery.served, "failed": Delivery.failed} {
		claimed := s.claim(t) // and not settled
		d := Delivery{ID: uuid.Must(uuid.NewV7()), Call: claimed.ID, Service: s.service.ID, Endpoint: s.endpoint.ID, Origin: call.External,
			AskedAt: rested.Add(time.Second), Method: "GET", Path: "/", Source: source, Payer: claimed.Signed.From, owner: s.owner}
		if err := s.recorder.Record(t.Context(), end(d)); !errors.Is(err, payment.ErrMoved) {
			t.Errorf("%s, of a call that is settling: %v, want %v", name, err, payment.ErrMoved)
		}
		if state := s.state(t, claimed.ID); state != call.Settling {
			t.Errorf("%s: the call is %s, want it settling", name, state)
		}
		d.Call = call.NewID()
		if err := s.recorder.Record(t.Context(), end(d)); !errors.Is(err, payment.ErrMoved) {
			t.Errorf("%s, of a call that is not there: %v, want %v", name, err, payment.ErrMoved)
		}
		s.want(t, name, before)
	}
}

func TestRecorder_Record_ACallIsItsOwnersUntilItsLeaseHasRunOut(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.asked(t).end(call.LocalError, "")
	another := d
	another.owner = uuid.Must(uuid.NewV7())
	nobody := d
	nobody.owner = uuid.UUID{}
	refused := func(when string, d Delivery) {
		t.Helper()
		if err := s.recorder.Record(t.Context(), d); !errors.Is(err, payment.ErrMoved) {
			t.Errorf("%s: %v, want %v", when, err, payment.ErrMoved)
		}
	}
	refused("another process, while the lease runs", another)
	pgtest.Shift(t, s.db, time.Minute-time.Microsecond)
	refused("nobody, just before the lease runs out", nobody)
	pgtest.Shift(t, s.db, time.Microsecond)
	refused("another process, after the lease", another)
	nobody.grace = time.Microsecond
	refused("nobody, within the grace", nobody)
	pgtest.Shift(t, s.db, time.Microsecond)
	s.record(t, nobody)
	refused("the owner, too late", d)
	s.want(t, "after all", world{Deliveries: 1, Refunds: 1, Jobs: 1})
}

func TestRecorder_Record_OneCallHasOneDelivery(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(Delivery) Delivery
		want world
	}{
		"served": {Delivery.served, world{Deliveries: 1}},
		"failed": {Delivery.failed, world{Deliveries: 1, OpenStrikes: 1, Evidence: 1, Cooldowns: 1, Refunds: 1, Jobs: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			d := tt.end(s.asked(t))
			var (
				wg   sync.WaitGroup
				wins atomic.Int32
			)
			for range 10 {
				wg.Go(func() {
					mine := d
					mine.ID = uuid.Must(uuid.NewV7())
					err := s.recorder.Record(t.Context(), mine)
					switch {
					case err == nil:
						wins.Add(1)
					case !errors.Is(err, payment.ErrMoved):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if wins.Load() != 1 {
				t.Errorf("%d recorders recorded the call, want 1", wins.Load())
			}
			s.want(t, "after ten recorders", tt.want)
		})
	}
}

func TestRecorder_Record_OwnAndProviderTrafficMovesNothing(t *testing.T) {
	t.Parallel()
	for from, moves := range map[call.Origin]bool{call.External: true, call.Unattributed: true, call.Own: false, call.Provider: false} {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			d := s.asked(t).failed()
			d.Origin = from
			s.record(t, d)
			want := world{Deliveries: 1, Refunds: 1, Jobs: 1}
			if moves {
				want.OpenStrikes, want.Evidence, want.Cooldowns = 1, 1, 1
			}
			s.want(t, "a failure", want)

			s = newShelf(t)
			s.fail(t)
			pgtest.Shift(t, s.db, rest)
			d = s.asked(t).served()
			d.Origin = from
			s.record(t, d)
			want = world{Deliveries: 2, OpenStrikes: 1, Evidence: 1, Cooldowns: 1, Refunds: 1, Jobs: 1}
			if moves {
				want.OpenStrikes, want.ClearedStrikes = 0, 1
			}
			s.want(t, "a success", want)
		})
	}
}

func TestRecorder_Record_ATrialHasNoCallAndCountsAllTheSame(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.trial(t).failed()
	s.record(t, d)
	s.want(t, "a failed trial", world{Deliveries: 1, OpenStrikes: 1, Evidence: 1, Cooldowns: 1})
	if err := s.recorder.Record(t.Context(), d); err == nil {
		t.Error("one trial was recorded twice")
	}
	pgtest.Shift(t, s.db, rest)
	s.record(t, s.trial(t).served())
	s.want(t, "a served trial", world{Deliveries: 2, ClearedStrikes: 1, Evidence: 1, Cooldowns: 1})
}

func TestRecorder_Record_AFlaggedFailureRestsAndIsNoStrike(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason     call.Reason
		retryAfter time.Duration
		want       time.Duration
	}{
		"throttled, and it says for how long": {call.UpstreamThrottled, 5 * time.Minute, 5 * time.Minute},
		"throttled, and it says nothing":      {call.UpstreamThrottled, 0, rest},
		"too large":                           {call.UpstreamTooLarge, 5 * time.Minute, rest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			d := s.asked(t).end(tt.reason, "")
			d.RetryAfter = tt.retryAfter
			s.record(t, d)
			s.want(t, name, world{Deliveries: 1, Cooldowns: 1, Refunds: 1, Jobs: 1})
			if left := s.rests(t); left != tt.want {
				t.Errorf("the service rests for %s, want %s", left, tt.want)
			}
		})
	}
}
