package pulse_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"market/internal/pulse"
)

func TestPatience_IsFiveRoundsAndTwoMinutesAtLeast(t *testing.T) {
	t.Parallel()
	for pause, want := range map[time.Duration]time.Duration{
		time.Second:             2 * time.Minute,
		24 * time.Second:        2 * time.Minute,
		24*time.Second + 1:      2*time.Minute + 5,
		time.Minute:             5 * time.Minute,
		24*time.Second - 1:      2 * time.Minute,
		time.Duration(0):        2 * time.Minute,
		10 * time.Minute:        50 * time.Minute,
		23999 * time.Nanosecond: 2 * time.Minute,
	} {
		if got := pulse.Patience(pause); got != want {
			t.Errorf("patience with a loop that pauses %s is %s, want %s", pause, got, want)
		}
	}
}

// A loop that is watched runs its rounds as the test says.
func watched(t *testing.T, name string, run func(ctx context.Context)) (loops *pulse.Loops, panics *atomic.Int32) {
	t.Helper()
	panics = new(atomic.Int32)
	loops = pulse.New(time.Now, func(string, any, []byte) { panics.Add(1) })
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	loops.Go(ctx, &running, name, run)
	t.Cleanup(func() { cancel(); running.Wait() })
	synctest.Wait()
	return loops, panics
}

// pass lets the bubble's time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantSilent(t *testing.T, when string, loops *pulse.Loops, want ...string) []pulse.Silence {
	t.Helper()
	var names []string
	silent := loops.Silent()
	for _, s := range silent {
		names = append(names, s.Loop)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s: silent are %v, want %v", when, names, want)
	}
	return silent
}

func TestLoops_ALoopThatHangsIsSilentOnceItsPatienceIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		loops, _ := watched(t, "sweeper", func(ctx context.Context) {
			pulse.Beat(ctx, time.Second)
			select { // a round that does not end
			case <-release:
				pulse.Beat(ctx, time.Second)
			case <-ctx.Done():
			}
			<-ctx.Done()
		})
		pass(2*time.Minute - 1)
		wantSilent(t, "just before", loops)
		pass(1)
		wantSilent(t, "at its patience", loops)
		pass(1)
		if s := wantSilent(t, "just after", loops, "sweeper"); len(s) == 1 && (s[0].Panicked || s[0].For != 2*time.Minute+1) {
			t.Errorf("it says %+v", s[0])
		}
		close(release)
		synctest.Wait()
		wantSilent(t, "once it has come round", loops)
	})
}

func TestLoops_ALoopThatNeverCameRoundIsSilentToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loops, _ := watched(t, "rounds", func(ctx context.Context) { <-ctx.Done() })
		pass(5 * time.Minute)
		wantSilent(t, "after five minutes", loops)
		pass(1)
		wantSilent(t, "after more", loops, "rounds")
	})
}

func TestLoops_APanicEndsNeitherTheProgramNorTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var begun, well atomic.Int32
		loops, panics := watched(t, "guard", func(ctx context.Context) {
			begun.Add(1)
			if well.Load() == 0 {
				panic("out of range")
			}
			pulse.Beat(ctx, time.Second)
			<-ctx.Done()
		})
		if n := panics.Load(); n != 1 {
			t.Fatalf("%d panics were told, want 1", n)
		}
		pass(5*time.Minute + 1)
		if silent := wantSilent(t, "a loop that always panics", loops, "guard"); len(silent) == 1 && !silent[0].Panicked {
			t.Error("it is not said that it panics")
		}
		if n := begun.Load(); n < 2 || n > 40 {
			t.Errorf("it was begun %d times in five minutes", n)
		}
		well.Store(1)
		pass(10 * time.Second)
		wantSilent(t, "once it has come round", loops)
	})
}

func TestLoops_OneThatEndedIsNotMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		loops, _ := watched(t, "heartbeat", func(context.Context) {})
		pass(time.Hour)
		wantSilent(t, "an hour after its end", loops)
		if names := loops.Names(); len(names) != 0 {
			t.Errorf("%v run, want none", names)
		}
	})
}

func TestBeat_WhereNobodyWatchesChangesNothing(t *testing.T) {
	t.Parallel()
	pulse.Beat(t.Context(), time.Second)
}
