package upstream

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

const ttl = 5 * time.Second

var (
	dead  = cause{call.UpstreamTimeout, "the service did not answer in time"}
	alive = cause{}
)

// probing is a prober over a scripted service that notes when it was probed. It belongs into a synctest bubble.
type probing struct {
	*Prober
	mu    sync.Mutex
	start time.Time
	at    []time.Duration
	reply cause
}

func newProbing(reply cause) *probing {
	p := &probing{start: time.Now(), reply: reply}
	p.Prober = newProber(func(context.Context, *catalog.Service) cause {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.at = append(p.at, time.Since(p.start))
		return p.reply
	}, ttl, time.Now)
	p.jitter = func(d time.Duration) time.Duration { return d }
	return p
}

func (p *probing) become(reply cause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply = reply
}

func (p *probing) probes() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.at)
}

// goBy lets time go by; the bubble's clock is false.
func goBy(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func closeProber(t *testing.T, p *Prober) {
	t.Helper()
	if err := p.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestProber_Live_HundredWaitForOneProbe(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	release := make(chan struct{})
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("probed %s", r.URL.Path)
		}
		asked.Add(1)
		<-release
	})
	p := NewProber(development(), time.Hour, time.Now)
	defer closeProber(t, p)
	s := serviceAt(t, server.URL, nil)
	var started, done sync.WaitGroup
	for range 100 {
		started.Add(1)
		done.Go(func() {
			started.Done()
			v, err := p.Live(t.Context(), s)
			if err != nil || !v.Live || v.At.IsZero() {
				t.Errorf("verdict = %+v, %v, want live", v, err)
			}
		})
	}
	started.Wait()
	close(release)
	done.Wait()
	if asked.Load() != 1 {
		t.Errorf("%d probes, want 1", asked.Load())
	}
}

func TestProber_Live_AVerdictHoldsForTheTTL(t *testing.T) {
	t.Parallel()
	for _, reply := range []cause{alive, dead} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		probes := 0
		p := newProber(func(context.Context, *catalog.Service) cause { probes++; return reply }, ttl, func() time.Time { return now })
		s := serviceAt(t, "http://127.0.0.1", nil)
		if _, known := p.Last(s); known {
			t.Error("a verdict before any probe")
		}
		start := now
		for _, step := range []struct {
			after  time.Duration
			probes int
		}{
			{0, 1},
			{ttl - time.Microsecond, 1},
			{ttl, 2}, // probed anew, and young again
			{2*ttl - time.Microsecond, 2},
			{2*ttl + time.Microsecond, 3},
		} {
			now = start.Add(step.after)
			v, err := p.Live(t.Context(), s)
			if err != nil || v.Live != (reply == alive) || probes != step.probes {
				t.Errorf("after %v: live = %v, %d probes, %v, want %v, %d", step.after, v.Live, probes, err, reply == alive, step.probes)
			}
		}
		last, _ := p.Last(s)
		now = last.At.Add(ttl - time.Microsecond)
		if v, known := p.Last(s); !known || v.Why != reply.detail || v.Reason != reply.reason {
			t.Errorf("just before the TTL: %+v, %v", v, known)
		}
		now = last.At.Add(ttl)
		if _, known := p.Last(s); known {
			t.Error("a verdict as old as the TTL still holds")
		}
		closeProber(t, p)
	}
}

func TestProber_Live_AVerdictAboutUsHoldsForASecondAlone(t *testing.T) {
	t.Parallel()
	for _, reason := range []call.Reason{call.EgressDown, call.LocalError} {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		probes := 0
		look := func(context.Context, *catalog.Service) cause {
			probes++
			return cause{reason, "no connection could be made from here"}
		}
		p := newProber(look, ttl, func() time.Time { return now })
		s := serviceAt(t, "http://127.0.0.1", nil)
		for _, step := range []struct {
			wait   time.Duration
			probes int
		}{{0, 1}, {troubleTTL - time.Microsecond, 1}, {time.Microsecond, 2}} {
			now = now.Add(step.wait)
			if _, err := p.Live(t.Context(), s); err != nil || probes != step.probes {
				t.Errorf("%s, %v later: %d probes, %v, want %d", reason, step.wait, probes, err, step.probes)
			}
		}
		now = now.Add(troubleTTL)
		if _, counts := p.Last(s); !counts {
			t.Error("a look that is due, and may take its time, opens the gate meanwhile")
		}
		now = now.Add(probeTimeout + troubleTTL/4)
		if v, counts := p.Last(s); counts {
			t.Errorf("after the next look has to be over %+v still counts", v)
		}
		closeProber(t, p)
	}
	short := newProber(func(context.Context, *catalog.Service) cause { return cause{call.EgressDown, "x"} }, time.Millisecond, time.Now)
	if got := (Verdict{Reason: call.EgressDown}).holds(short.TTL()); got != time.Millisecond {
		t.Errorf("with a TTL of 1ms it holds for %v", got)
	}
	closeProber(t, short)
}

func TestProber_Live_AWaiterMayLeaveAndTheProbeGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		probing := make(chan struct{})
		p := newProber(func(ctx context.Context, _ *catalog.Service) cause {
			select {
			case <-probing:
				return alive
			case <-ctx.Done():
				return dead
			}
		}, ttl, time.Now)
		s := serviceAt(t, "http://127.0.0.1", nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Live(ctx, s); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want that of the waiter", err)
		}
		close(probing)
		synctest.Wait()
		if v, known := p.Last(s); !known || !v.Live {
			t.Errorf("verdict = %+v, %v, want live", v, known)
		}
		closeProber(t, p)
	})
}

func TestProber_Live_AProbeHasItsOwnDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProber(func(ctx context.Context, _ *catalog.Service) cause { <-ctx.Done(); return dead }, ttl, time.Now)
		start := time.Now()
		v, err := p.Live(t.Context(), serviceAt(t, "http://127.0.0.1", nil))
		if took := time.Since(start); err != nil || v.Live || took != 3*time.Second {
			t.Errorf("live = %v after %v, %v, want a negative verdict after 3s", v.Live, took, err)
		}
		closeProber(t, p)
	})
}

func TestProber_Wanted_ProbesAgainWhileRequestsArriveAndStopsWhenTheServiceLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProbing(dead)
		s := serviceAt(t, "http://127.0.0.1", nil)
		if _, err := p.Live(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for range 160 { // a request each second
			p.Wanted(s)
			p.Wanted(s)
			goBy(time.Second)
		}
		seconds := func(at ...int) (all []time.Duration) {
			for _, s := range at {
				all = append(all, time.Duration(s)*time.Second)
			}
			return all
		}
		// Waits of 5, 10, 20, 40, 60, 60.
		if got, want := p.probes(), seconds(0, 5, 15, 35, 75, 135); !slices.Equal(got, want) {
			t.Errorf("probed at %v, want %v", got, want)
		}
		p.become(alive)
		for range 60 {
			p.Wanted(s)
			goBy(time.Second)
		}
		if v, known := p.Last(s); known && !v.Live {
			t.Errorf("verdict = %+v, want live", v)
		}
		// The last call to Wanted may have started a watch anew, because only the gate knows not to call it for a live service.
		if got, want := p.probes()[:7], seconds(0, 5, 15, 35, 75, 135, 195); !slices.Equal(got, want) {
			t.Errorf("probed at %v, want %v", got, want)
		}
		closeProber(t, p.Prober)
	})
}

func TestProber_Wanted_TroubleOfOursLengthensNoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProbing(cause{call.EgressDown, "no connection could be made from here"})
		s := serviceAt(t, "http://127.0.0.1", nil)
		if _, err := p.Live(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if v, counts := p.Last(s); !counts || v.Live {
				t.Errorf("%d times half a second after the trouble was seen, callers are asked to pay", i)
			}
			p.Wanted(s)
			goBy(troubleTTL / 2)
		}
		if got, want := p.probes(), []time.Duration{0, 1 * time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("probed at %v, want %v", got, want)
		}
		closeProber(t, p.Prober)
	})
}

// A provider that sees why its probe fails and changes the listing must not wait for a watch that knows only the old one.
func TestProber_Wanted_ProbesByTheNewestListing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var paths []string
		p := newProber(func(_ context.Context, s *catalog.Service) cause { paths = append(paths, s.Probe.Path); return dead }, ttl, time.Now)
		p.jitter = func(d time.Duration) time.Duration { return d }
		s := serviceAt(t, "http://127.0.0.1", nil)
		p.Wanted(s)
		goBy(ttl)
		changed := *s
		changed.Probe.Path = "/status"
		p.Wanted(&changed)
		goBy(2 * ttl)
		if want := []string{"/healthz", "/status"}; !slices.Equal(paths, want) {
			t.Errorf("probed %q, want %q", paths, want)
		}
		closeProber(t, p)
	})
}

func TestProber_Wanted_StopsWhenNobodyAsksForTwoIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProbing(dead)
		s := serviceAt(t, "http://127.0.0.1", nil)
		p.Wanted(s) // never again: at 75 that is less than two intervals of 40 ago, at 135 it is more than two of 60
		goBy(10 * time.Minute)
		if got, want := p.probes(), []time.Duration{5 * time.Second, 15 * time.Second, 35 * time.Second, 75 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("probed at %v, want %v", got, want)
		}
		p.Wanted(s)
		goBy(5 * time.Second)
		if got := len(p.probes()); got != 5 {
			t.Errorf("%d probes after a new request, want 5", got)
		}
		closeProber(t, p.Prober)
	})
}

func TestProber_Close_EndsEveryGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the bubble fails the test if a goroutine stays
		looking := make(chan struct{})
		p := newProber(func(ctx context.Context, _ *catalog.Service) cause { close(looking); <-ctx.Done(); return dead }, ttl, time.Now)
		s := serviceAt(t, "http://127.0.0.1", nil)
		waiter := make(chan error, 1)
		go func() {
			_, err := p.Live(context.Background(), s)
			waiter <- err
		}()
		<-looking
		p.Wanted(s)
		p.Wanted(serviceAt(t, "http://127.0.0.1", nil))
		closeProber(t, p)
		if err := <-waiter; !errors.Is(err, ErrClosed) {
			t.Errorf("waiter: %v, want ErrClosed", err)
		}
		if _, known := p.Last(s); known {
			t.Error("a probe that was stopped half way left a verdict")
		}
		p.Wanted(s)
		if _, err := p.Live(t.Context(), s); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	})
}

func TestLater_LengthensByAQuarterAtMost(t *testing.T) {
	t.Parallel()
	for range 1000 {
		if got := later(ttl); got < ttl || got > ttl+ttl/4 {
			t.Fatalf("later(%v) = %v", ttl, got)
		}
	}
}

// Each edit of a listing makes another name for its verdicts, and nobody asks for the old ones again.
func TestProber_ForgetsVerdictsThatNobodyCanUse(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := newProber(func(context.Context, *catalog.Service) cause { return dead }, ttl, func() time.Time { return now })
	s := serviceAt(t, "http://127.0.0.1", nil)
	for range 5 {
		s.Probe.Path += "x"
		if _, err := p.Live(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		now = now.Add(verdictLife)
	}
	if len(p.verdicts) > 2 {
		t.Errorf("%d verdicts are kept after as many hours", len(p.verdicts))
	}
	closeProber(t, p)
}
