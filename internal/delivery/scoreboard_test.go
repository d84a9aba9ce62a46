package delivery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

var errReading = errors.New("the database is away")

func TestScoreboard_ReadsWhatItIsAskedForAndKeepsIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	now := s.opened
	board := NewScoreboard(s.db, func() time.Time { return now }, func(err error) { t.Error(err) })
	served := func() (all, one int) {
		scores, at := board.All(t.Context())
		tallies, of := board.Of(t.Context(), s.service.ID)
		if !at.Equal(of) || len(tallies) != 3 {
			t.Fatalf("all as of %s, one as of %s, of which there are %d", at, of, len(tallies))
		}
		return scores[s.service.ID].Served, tallies[0].Served
	}
	if all, one := served(); all != 0 || one != 0 {
		t.Errorf("before the first call %d and %d served", all, one)
	}
	s.record(t, s.asked(t).served())
	now = now.Add(sharedAge - time.Nanosecond)
	if all, one := served(); all != 0 || one != 0 {
		t.Errorf("just before it is old, it was read again: %d and %d served", all, one)
	}
	now = now.Add(time.Nanosecond)
	if all, one := served(); all != 1 || one != 1 {
		t.Errorf("it is old and was not read again: %d and %d served", all, one)
	}
	if scores, _ := board.All(t.Context()); scores[uuid.New()] != (Tally{}) {
		t.Error("an unknown service has a tally")
	}
}

func TestShared_OneReadsForAllWhoLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shared[int]
		var readings atomic.Int32
		r := reader{now: time.Now, onError: func(err error) { t.Error(err) }}
		read := func(context.Context) (int, error) {
			<-time.After(time.Second) // by the bubble's own clock
			return int(readings.Add(1)), nil
		}
		all := func(want int) {
			t.Helper()
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if got, at := s.look(t.Context(), r, read); got != want && got != want-1 || got == 0 || at.IsZero() {
						t.Errorf("somebody sees reading %d of %s, want %d", got, at, want)
					}
				})
			}
			wg.Wait()
			if got := int(readings.Load()); got != want {
				t.Errorf("%d readings, want %d", got, want)
			}
		}
		all(1)
		<-time.After(sharedAge - time.Nanosecond)
		all(1)
		<-time.After(time.Nanosecond)
		all(2)
	})
}

// What cannot be read is asked for less and less, is said each time, and what was read before stays with its time.
func TestShared_BacksOffFromWhatGoesWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shared[int]
		readings, troubles := 0, 0
		r := reader{now: time.Now, onError: func(err error) {
			if errors.Is(err, errReading) {
				troubles++
			}
		}}
		read := func(context.Context) (int, error) {
			if readings++; readings > 1 {
				return 0, errReading
			}
			return 1, nil
		}
		_, first := s.look(t.Context(), r, read)
		for wait := sharedAge; wait <= sharedBackOff; wait *= 2 {
			before := readings
			<-time.After(wait - time.Nanosecond)
			if s.look(t.Context(), r, read); readings != before {
				t.Fatalf("read again within %s", wait)
			}
			<-time.After(time.Nanosecond)
			if got, at := s.look(t.Context(), r, read); readings != before+1 || got != 1 || !at.Equal(first) {
				t.Fatalf("after %s: %d readings, value %d of %s", wait, readings-before, got, at)
			}
			if before == 1 {
				wait /= 2 // the first wait after trouble is that of before
			}
		}
		if troubles != readings-1 {
			t.Errorf("%d readings went wrong, and %d were said", readings-1, troubles)
		}
		<-time.After(sharedBackOff)
		if before := readings; true {
			if s.look(t.Context(), r, read); readings != before+1 {
				t.Error("it is given up")
			}
		}
	})
}

// A reading that takes long holds nobody up for long, and ends.
func TestShared_NobodyWaitsLongForAReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s shared[int]
		var trouble error
		r := reader{now: time.Now, onError: func(err error) { trouble = err }}
		began := time.Now()
		_, at := s.look(t.Context(), r, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if waited := time.Since(began); waited != sharedWait || !at.IsZero() {
			t.Errorf("waited %s for what was read at %s", waited, at)
		}
		<-time.After(sharedTime)
		synctest.Wait()
		if !errors.Is(trouble, context.DeadlineExceeded) {
			t.Errorf("the reading went wrong with %v", trouble)
		}
	})
}

// However many services are looked at at once, only so many are read.
func TestShared_SoManyAreReadAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int32
		r := reader{now: time.Now, onError: func(err error) { t.Error(err) }, places: make(chan struct{}, tallyPlaces)}
		ones := make([]shared[int], 10)
		var wg sync.WaitGroup
		for i := range ones {
			wg.Go(func() {
				ones[i].look(t.Context(), r, func(context.Context) (int, error) {
					most.Store(max(most.Load(), under.Add(1)))
					<-time.After(100 * time.Millisecond) // by the bubble's own clock
					under.Add(-1)
					return 1, nil
				})
			})
		}
		wg.Wait()
		if most.Load() != tallyPlaces {
			t.Errorf("%d were read at a time, want %d", most.Load(), tallyPlaces)
		}
	})
}
