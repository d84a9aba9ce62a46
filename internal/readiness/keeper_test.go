package readiness

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

const chainA, chainB = "eip155:84532", "eip155:1"

var self = uuid.UUID{1}

// An authority answers looks with what it is set to.
type authority struct {
	says  atomic.Pointer[Finding] // nil: it hangs
	looks atomic.Int32
}

func (a *authority) set(f Finding) { a.says.Store(&f) }

func (a *authority) hang() { a.says.Store(nil) }

func (a *authority) look(ctx context.Context) Finding {
	a.looks.Add(1)
	if f := a.says.Load(); f != nil {
		return *f
	}
	<-ctx.Done()
	return Whole(ctx.Err())
}

// A world is a keeper of one network whose loops run in a bubble.
type world struct {
	*Keeper
	of   *authority
	stop context.CancelFunc
	news []error
}

// newWorld is a process of a fleet whose heartbeats come by themselves, unless it stands alone.
func newWorld(t *testing.T, opts Options) *world {
	t.Helper()
	w := &world{of: &authority{}}
	w.of.set(Finding{})
	opts.Limit, opts.Self = 5*time.Second, self
	opts.Changed = func(_ string, err error) { w.news = append(w.news, err) }
	w.Keeper = New(map[string]Check{chainA: w.of.look}, opts)
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	if !opts.Alone {
		w.beat()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Second):
					w.beat()
				}
			}
		}()
	}
	go w.Refresh(ctx, chainA)
	synctest.Wait()
	return w
}

// admit is Admit of a call that shows its payment.
func (w *world) admit(ctx context.Context, network string, price int64) error {
	_, err := w.Admit(ctx, network, price)
	return err
}

// beat is a heartbeat with this process alone.
func (w *world) beat() {
	now := time.Now()
	w.Heard(Reading{Sent: now, At: now, Members: []Member{{ID: self, Beat: now, Terms: w.opts.Own}}})
	w.Beat(now)
}

func wantCause(t *testing.T, when string, err error, want Cause) {
	t.Helper()
	closed, is := errors.AsType[*Closed](err)
	if want == 0 && err != nil || want != 0 && (!is || closed.Cause != want) {
		t.Errorf("%s: %v, want %s", when, err, want)
	}
}

var own = Terms{Budget: 200 * dollar, Rate: 20 * dollar, Burst: 20 * dollar} // alone: 9 s

// A timeout never ends a good result before its allowance, and a definite no does at once.
func TestKeeper_ATimeoutAgesAResultAndANoEndsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Alone: true, Fixed: 5 * time.Second})
		wantCause(t, "at first", w.Ready(chainA), 0)
		w.of.hang()
		proved := time.Now().Add(-w.Standing(chainA).Settle.Age)
		for w.Standing(chainA).State == Ready {
			time.Sleep(100 * time.Millisecond)
		}
		wantCause(t, "while a look hangs", w.Ready(chainA), 0)
		if s := w.Standing(chainA); s.State != Degraded || s.Why == nil {
			t.Errorf("while a look hangs: %s, %v; want degraded, with a reason", s.State, s.Why)
		}
		time.Sleep(time.Until(proved.Add(5*time.Second - 1)))
		wantCause(t, "just below the allowance", w.Ready(chainA), 0)
		time.Sleep(time.Nanosecond)
		wantCause(t, "on the allowance", w.Ready(chainA), CauseTooOld)
		time.Sleep(20 * time.Second)
		wantCause(t, "long after it", w.Ready(chainA), CauseTooOld)
		w.of.set(Finding{})
		time.Sleep(10 * time.Second)
		wantCause(t, "when it answers again", w.Ready(chainA), 0)
		w.of.set(Whole(Deny("the asset is paused")))
		time.Sleep(2001 * time.Millisecond) // 40 % of the allowance
		wantCause(t, "denied", w.Ready(chainA), CauseDenied)
		w.of.hang()
		time.Sleep(time.Minute)
		wantCause(t, "denied, and silent since", w.Ready(chainA), CauseDenied)
		w.of.set(Finding{Refund: Deny("the treasury is short")})
		time.Sleep(10 * time.Second)
		if s := w.Standing(chainA); s.Cause != CauseDenied || s.Settle.State != Ready || s.Refund.Cause != CauseDenied {
			t.Errorf("settling works and refunding does not: %+v", s)
		}
		w.stop()
		if len(w.news) != 3 || w.news[0] == nil || w.news[1] != nil || w.news[2] == nil {
			t.Errorf("news %v, want that it stopped, went on and stopped", w.news)
		}
	})
}

// The pause from look to look is a random part of the allowance, and never under half a second nor over ten.
func TestKeeper_LooksAtRandomPointsOfTheAllowance(t *testing.T) {
	t.Parallel()
	for allowance, want := range map[time.Duration][2]time.Duration{
		0: {lookMax, lookMax}, time.Second: {lookMin, lookMin}, 5 * time.Second: {time.Second, 2 * time.Second}, 9 * time.Second: {1800 * time.Millisecond, 3600 * time.Millisecond},
		time.Hour: {lookMax, lookMax},
	} {
		least, most := time.Hour, time.Duration(0)
		for range 1000 {
			p := pause(allowance)
			least, most = min(least, p), max(most, p)
		}
		if least < want[0] || most > want[1] || want[0] < want[1] && most-least < (want[1]-want[0])*3/4 {
			t.Errorf("an allowance of %s: pauses of %s to %s, want them spread over %s to %s", allowance, least, most, want[0], want[1])
		}
	}
}

// What the authority says of its answer makes it shorter, and is what looks keep up with.
func TestKeeper_TheAuthorityShortensHowLongItsAnswerIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Own: own})
		w.of.set(Finding{ValidFor: 2 * time.Second})
		time.Sleep(10 * time.Second)
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			wantCause(t, "while it answers", w.Ready(chainA), 0)
		}
		w.of.hang()
		time.Sleep(2 * time.Second)
		w.Proved(chainA, Settle, time.Now())
		w.Proved(chainA, Refund, time.Now())
		wantCause(t, "when its time is over, whatever was settled", w.Ready(chainA), CauseTooOld)
		w.stop()
	})
}

// Each capability is proved by what succeeds of it, and the older one decides.
func TestKeeper_ASuccessIsAProofOfItsCapability(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Own: own})
		w.of.hang()
		time.Sleep(8 * time.Second)
		began := time.Now()
		w.Proved(chainA, Settle, began)
		w.Proved(chainA, Settle, began.Add(time.Hour)) // a time that has not come is no proof
		s := w.Standing(chainA)
		if s.Settle.Age != 0 || s.Refund.Age <= time.Second || s.State != Degraded {
			t.Errorf("after a settlement: %+v", s)
		}
		time.Sleep(5 * time.Second)
		wantCause(t, "settlements alone", w.Ready(chainA), CauseTooOld)
		w.Proved(chainA, Refund, began)
		wantCause(t, "and a refund", w.Ready(chainA), 0)
		time.Sleep(time.Until(began.Add(9 * time.Second)))
		wantCause(t, "until they are too old", w.Ready(chainA), CauseTooOld)
		w.stop()
	})
}

// What somebody else says closes a network at once, for new calls alone.
func TestKeeper_ASwitchAndALimitAreAskedForEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stopped, limited error
		w := newWorld(t, Options{Own: own, Stopped: func(string) error { return stopped }, Limited: func(string) error { return limited }})
		limited = errors.New("the facilitator is out")
		wantCause(t, "limited", w.Ready(chainA), CauseLimited)
		if !errors.Is(w.Look(chainA, 1), limited) || w.admit(t.Context(), chainA, 1) != nil {
			t.Error("the reason is not told, or a call under way is ended")
		}
		stopped = errors.New("an admin stopped it")
		wantCause(t, "stopped", w.Look(chainA, 1), CauseStopped)
		if s := w.Standing(chainA); s.State != NotReady || s.Cause != CauseStopped || s.Settle.State != Ready {
			t.Errorf("stopped: %+v", s)
		}
		stopped, limited = nil, nil
		wantCause(t, "over", w.Ready(chainA), 0)
		wantCause(t, "a network that nobody checks", w.Ready(chainB), CauseUnknown)
		wantCause(t, "a call there", w.admit(t.Context(), chainB, 1), CauseUnknown)
		w.stop()
		if len(w.news) != 0 {
			t.Errorf("news: %v", w.news)
		}
	})
}

// Without the database the others count this process as dead after three beats, so it admits nothing from then on.
func TestKeeper_WithoutTheDatabaseItIsNotReady(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		terms Terms
		after time.Duration
	}{"with a budget, after three": {own, AliveFor}, "in development, when what is known is too old": {Terms{}, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{of: &authority{}}
				w.of.set(Finding{})
				w.Keeper = New(map[string]Check{chainA: w.of.look}, Options{Own: tt.terms, Fixed: 5 * time.Second, Limit: time.Second, Self: self})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wantCause(t, "before the first", w.Ready(chainA), CauseNoDatabase)
				w.beat()
				go w.Refresh(ctx, chainA)
				synctest.Wait()
				wantCause(t, "with a beat", w.Ready(chainA), 0)
				time.Sleep(tt.after - 1)
				wantCause(t, "just within", w.Ready(chainA), 0)
				time.Sleep(time.Nanosecond)
				wantCause(t, "on it", w.Ready(chainA), CauseNoDatabase)
				wantCause(t, "a call that is under way", w.admit(t.Context(), chainA, 1), CauseNoDatabase)
				w.beat()
				synctest.Wait()
				wantCause(t, "when it is there again", w.Ready(chainA), 0)
				w.Leave()
				w.beat()
				wantCause(t, "when it has left", w.admit(t.Context(), chainA, 1), CauseNoDatabase)
			})
		})
	}
}

// A call that costs more than what goes at once is never taken; one that has to wait waits for a second at most, and its proof is judged when it has waited.
func TestKeeper_Admit_TakesThePriceAndComparesTheAgeThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Own: own})
		wantCause(t, "too dear to be asked for", w.Look(chainA, 20*dollar+1), CauseTooDear)
		wantCause(t, "too dear", w.admit(t.Context(), chainA, 20*dollar+1), CauseTooDear)
		began := time.Now()
		wantCause(t, "all at once", w.admit(t.Context(), chainA, 20*dollar), 0)
		wantCause(t, "half of it", w.Look(chainA, 10*dollar), 0)
		wantCause(t, "half of it, half a second later", w.admit(t.Context(), chainA, 10*dollar), 0)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		waiting := make(chan error)
		go func() { waiting <- w.admit(t.Context(), chainA, 20*dollar) }()
		synctest.Wait()
		wantCause(t, "more than a second later", w.admit(t.Context(), chainA, 1), CauseSpent)
		wantCause(t, "and to be asked for", w.Look(chainA, 1), CauseSpent)
		if err := <-waiting; err != nil {
			t.Errorf("who waits for a second: %v", err)
		}
		leaving, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if err := w.admit(leaving, chainA, 20*dollar); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who leaves: %v", err)
		}
		time.Sleep(999 * time.Millisecond)
		wantCause(t, "what was not used is there again", w.admit(t.Context(), chainA, 20*dollar), 0)

		go func() { waiting <- w.admit(t.Context(), chainA, 20*dollar) }()
		time.Sleep(100 * time.Millisecond)
		w.of.set(Whole(Deny("it is over")))
		w.takeIn(w.networks[chainA], *w.of.says.Load(), time.Now())
		wantCause(t, "denied while it waits", <-waiting, CauseDenied)
		w.of.set(Finding{})
		w.takeIn(w.networks[chainA], Finding{}, time.Now())
		began = time.Now()
		wantCause(t, "what was not used is there again", w.admit(t.Context(), chainA, 20*dollar), 0)
		if time.Since(began) != 0 {
			t.Errorf("it had to wait for %s", time.Since(began))
		}
		w.stop()
	})
}

// Who shows nothing takes nothing from others, however often, and those who wait behind it go on at once.
func TestKeeper_Return_WhatWasNotShownIsThereForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Own: own})
		began := time.Now()
		for range 50 {
			taken, err := w.Admit(t.Context(), chainA, 20*dollar)
			wantCause(t, "who shows nothing", err, 0)
			waiting := make(chan error)
			go func() {
				behind, err := w.Admit(t.Context(), chainA, 20*dollar)
				w.Return(behind)
				waiting <- err
			}()
			synctest.Wait()
			w.Return(taken)
			w.Return(taken) // once more is nothing
			wantCause(t, "who waits behind it", <-waiting, 0)
		}
		wantCause(t, "an honest call", w.admit(t.Context(), chainA, 20*dollar), 0)
		if took := time.Since(began); took != 0 {
			t.Errorf("they waited for %s", took)
		}
		w.Return(Admission{})
		w.stop()
	})
}

// A smaller fleet counts for what is proved afterwards alone, and what is unproved for less of everything.
func TestKeeper_Line_SaysWhatTheAllowanceIsDerivedFrom(t *testing.T) {
	t.Parallel()
	k := New(map[string]Check{chainA: nil}, Options{Self: self, Own: own})
	now := time.Now()
	other := Member{ID: uuid.UUID{2}, Beat: now, Terms: own}
	k.Heard(Reading{Sent: now, At: now, Members: []Member{{ID: self, Beat: now, Terms: own}, other}})
	if got, want := k.Line(), "b=200 Σr=40 n=2 allowance=4s Σc=40"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	k.Heard(Reading{Sent: now, At: now, Members: []Member{{ID: self, Beat: now, Terms: own}}, Unproved: map[string]int64{chainA: 100 * dollar}})
	if got, want := k.Line(), "b=200 Σr=20 n=1 allowance=4s Σc=20"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	shared := own
	shared.Share = 2500
	k = New(map[string]Check{chainA: nil}, Options{Self: self, Own: shared})
	k.Heard(Reading{Sent: now, At: now, Members: []Member{other}})
	if got, want := k.Line(), "b=200 Σr=20 n=2 allowance=1.5s Σc=20 s=0.25 r=20 c=20"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Whole is a finding that holds for both capabilities.
func Whole(err error) Finding { return Finding{Settle: err, Refund: err} }
