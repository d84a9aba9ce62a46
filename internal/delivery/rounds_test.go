package delivery

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/upstream"
)

func TestRounds_Hold_TakesAWeekAndAHundredChecks(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	for name, tt := range map[string]struct {
		checks int
		lasts  time.Duration
		want   bool
	}{
		"both":                          {100, week, true},
		"one check fewer":               {99, week, false},
		"a moment less":                 {100, week - time.Microsecond, false},
		"two checks around a long stop": {2, 10 * week, false},
		"a hundred in an hour":          {100, time.Hour, false},
	} {
		if got := usualRounds.hold(silence{checks: tt.checks, lasts: tt.lasts}); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// shortRounds hold a service after three checks and two hours.
var shortRounds = Rounds{Every: time.Hour, Checks: 3, After: 2 * time.Hour}

// round lets an hour go by and walks once; the service answers so.
func (s shelf) round(t *testing.T, v upstream.Verdict, err error) {
	t.Helper()
	pgtest.Shift(t, s.db, time.Hour)
	walkErr := shortRounds.walk(t.Context(), s.db, s.snapshot(t), func(context.Context, *catalog.Service) (upstream.Verdict, error) { return v, err })
	if walkErr != nil {
		t.Fatal(walkErr)
	}
}

func (s shelf) snapshot(t *testing.T) *catalog.Snapshot {
	t.Helper()
	c := catalog.New(time.Now, time.Minute)
	if err := c.Load(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	return c.Current()
}

var (
	mute  = upstream.Verdict{Reason: call.NotLive, Why: "status 404"}
	awake = upstream.Verdict{Live: true}
)

// B126: what is dead leaves the shelf within a stated time, without a strike: a person looks at it, and its owner can put it right.
func TestRounds_AServiceThatStaysSilentIsHeld(t *testing.T) {
	t.Parallel()
	trouble := upstream.Verdict{Reason: call.EgressDown, Why: "our resolver failed"}
	type answer struct {
		verdict upstream.Verdict
		err     error
	}
	for name, tt := range map[string]struct {
		answers []answer
		want    catalog.State
	}{
		"silent for long enough":          {[]answer{{mute, nil}, {mute, nil}, {mute, nil}}, catalog.Held},
		"not yet":                         {[]answer{{mute, nil}, {mute, nil}}, catalog.Listed},
		"it answered in between":          {[]answer{{mute, nil}, {mute, nil}, {awake, nil}, {mute, nil}, {mute, nil}}, catalog.Listed},
		"what we could not look at":       {[]answer{{mute, nil}, {trouble, nil}, {trouble, nil}, {mute, nil}}, catalog.Listed},
		"looks that were broken off":      {[]answer{{mute, nil}, {upstream.Verdict{}, errors.New("closed")}, {mute, nil}}, catalog.Listed},
		"trouble of ours ends no silence": {[]answer{{mute, nil}, {trouble, nil}, {mute, nil}, {mute, nil}}, catalog.Held},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			for _, a := range tt.answers {
				s.round(t, a.verdict, a.err)
			}
			s.want(t, "after the rounds", world{Service: tt.want})
		})
	}
}

func TestRounds_AnotherProbeOrARelistingBeginsAfresh(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	checked := func(when string, answered, isSilent bool) {
		t.Helper()
		c, err := LastCheckOf(t.Context(), s.db, s.service.ID)
		if err != nil || c.At.IsZero() || c.AnsweredAt.IsZero() == answered || c.SilentSince.IsZero() == isSilent {
			t.Errorf("%s: the last check is %+v (%v)", when, c, err)
		}
	}
	if c, err := LastCheckOf(t.Context(), s.db, s.service.ID); err != nil || c != (LastCheck{}) {
		t.Errorf("before the first round: %+v (%v)", c, err)
	}
	s.round(t, awake, nil)
	checked("when it answered", true, false)
	s.round(t, mute, nil)
	s.round(t, mute, nil)
	checked("when it did not", true, true)
	if _, err := s.db.Exec(t.Context(), `UPDATE services SET probe_path = '/alive'`); err != nil {
		t.Fatal(err)
	}
	s.round(t, mute, nil)
	s.round(t, mute, nil)
	s.want(t, "after its probe was changed", world{})
	s.round(t, mute, nil)
	s.want(t, "when that is silent as well", world{Service: catalog.Held})
	var reason, by string
	if err := s.db.QueryRow(t.Context(), `SELECT state_reason, state_by FROM services`).Scan(&reason, &by); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(reason, "it has not answered its liveness probe since ") || !strings.HasSuffix(reason, ": status 404") || by != catalog.System.Name {
		t.Errorf("it is held by %s: %s", by, reason)
	}

	if _, err := (catalog.Store{}).Move(t.Context(), s.db, s.service.ID, catalog.Change{Cause: catalog.CauseRelisting, By: catalog.AdminToken, Reason: "it is to get a chance"}); err != nil {
		t.Fatal(err)
	}
	s.round(t, mute, nil)
	s.want(t, "an hour after it was put back", world{})
	s.round(t, mute, nil)
	s.want(t, "when it has been silent for long again", world{Service: catalog.Held})
	s.round(t, awake, nil)
	s.want(t, "what is held is not put back by a round", world{Service: catalog.Held})
}

func TestRounds_OfManyReplicasOneAsks(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	shelf := s.snapshot(t)
	var asked atomic.Int32
	walk := func() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				err := shortRounds.walk(t.Context(), s.db, shelf, func(context.Context, *catalog.Service) (upstream.Verdict, error) {
					asked.Add(1)
					return awake, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	for _, round := range []struct {
		after time.Duration
		want  int32
	}{{shortRounds.Every - time.Microsecond, 0}, {time.Microsecond, 1}, {shortRounds.Every - time.Microsecond, 1}, {time.Microsecond, 2}} {
		pgtest.Shift(t, s.db, round.after)
		walk()
		if got := asked.Load(); got != round.want {
			t.Errorf("%s later the service was asked %d times in all, want %d", round.after, got, round.want)
		}
	}
}
