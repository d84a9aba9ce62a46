package readiness_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"market/internal/readiness"
)

const (
	network = "eip155:84532"
	age     = 5 * time.Second
	limit   = 2 * time.Second
)

var errGas = errors.New("the gas wallet is empty")

func options(now func() time.Time) readiness.Options {
	return readiness.Options{Age: age, Limit: limit, Now: now, Changed: func(string, error) {}}
}

// checker has one network, whose check counts how often it ran.
func checker(check readiness.Check) (c *readiness.Checker, runs *atomic.Int32) {
	runs = new(atomic.Int32)
	counting := func(ctx context.Context) error {
		runs.Add(1)
		return check(ctx)
	}
	return readiness.New(map[string]readiness.Check{network: counting}, options(time.Now)), runs
}

func TestChecker_Ready_AVerdictIsGoodUntilItsAge(t *testing.T) {
	t.Parallel()
	for name, verdict := range map[string]error{"yes": nil, "no": errGas} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			runs := 0
			c := readiness.New(map[string]readiness.Check{network: func(context.Context) error { runs++; return verdict }},
				options(func() time.Time { return now }))
			want := func(when string, n int) {
				t.Helper()
				if err := c.Ready(t.Context(), network); !errors.Is(err, verdict) || runs != n {
					t.Errorf("%s: %v after %d checks, want %v after %d", when, err, runs, verdict, n)
				}
			}
			want("at first", 1)
			now = now.Add(age - time.Nanosecond)
			want("just before its age", 1)
			now = now.Add(time.Nanosecond)
			want("exactly at its age", 2)
		})
	}
}

func TestChecker_Ready_CallersShareOneCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		c, runs := checker(func(context.Context) error { <-answer; return errGas })
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := c.Ready(t.Context(), network); !errors.Is(err, errGas) {
					t.Errorf("ready says %v, want %v", err, errGas)
				}
			})
		}
		synctest.Wait()
		close(answer)
		wg.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d checks, want 1", runs.Load())
		}
	})
}

func TestChecker_Ready_ACallerThatLeavesDoesNotEndTheCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, runs := checker(func(ctx context.Context) error {
			select {
			case <-time.After(limit / 2):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		leaving, leave := context.WithTimeout(t.Context(), limit/4)
		defer leave()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.Ready(t.Context(), network); err != nil {
				t.Errorf("who stays hears %v, want that it is ready", err)
			}
		})
		if err := c.Ready(leaving, network); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who leaves hears %v, want %v", err, context.DeadlineExceeded)
		}
		wg.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d checks, want 1", runs.Load())
		}
	})
}

func TestChecker_Ready_ACheckThatDoesNotComeBackIsANo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := checker(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		started := time.Now()
		if err := c.Ready(t.Context(), network); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ready says %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(started); took != limit {
			t.Errorf("it took %s, want %s", took, limit)
		}
	})
}

func TestChecker_Ready_ANetworkThatNobodyChecksIsANo(t *testing.T) {
	t.Parallel()
	c, runs := checker(func(context.Context) error { return nil })
	if err := c.Ready(t.Context(), "eip155:1"); !errors.Is(err, readiness.ErrUnknown) || runs.Load() != 0 {
		t.Errorf("ready says %v after %d checks, want %v after none", err, runs.Load(), readiness.ErrUnknown)
	}
}

func TestChecker_All_NamesEveryNetworkWithItsOwnVerdict(t *testing.T) {
	t.Parallel()
	c := readiness.New(map[string]readiness.Check{
		network:    func(context.Context) error { return nil },
		"eip155:1": func(context.Context) error { return errGas },
	}, options(time.Now))
	all := c.All(t.Context())
	if err, there := all[network]; len(all) != 2 || !there || err != nil || !errors.Is(all["eip155:1"], errGas) {
		t.Errorf("all = %v, want %s ready and eip155:1 with %v", all, network, errGas)
	}
}

func TestChecker_All_TakesNoLongerThanOneCheckMay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		c := readiness.New(map[string]readiness.Check{network: hangs, "eip155:1": hangs, "eip155:2": hangs}, options(time.Now))
		started := time.Now()
		all := c.All(t.Context())
		if took := time.Since(started); took != limit || len(all) != 3 {
			t.Errorf("it took %s and has %d verdicts, want %s and 3", took, len(all), limit)
		}
	})
}

func TestChecker_Ready_OnlyAChangeOfTheVerdictIsNews(t *testing.T) {
	t.Parallel()
	var (
		now     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		verdict error
		news    []error
	)
	opts := options(func() time.Time { return now })
	opts.Changed = func(name string, err error) {
		if name != network {
			t.Errorf("news of %s, want of %s", name, network)
		}
		news = append(news, err)
	}
	c := readiness.New(map[string]readiness.Check{network: func(context.Context) error { return verdict }}, opts)
	for _, verdict = range []error{nil, nil, errGas, errGas, nil, nil} {
		_ = c.Ready(t.Context(), network) // what it says is the subject of other tests
		now = now.Add(age)
	}
	if len(news) != 2 || !errors.Is(news[0], errGas) || news[1] != nil {
		t.Errorf("news = %v, want the failure and the recovery", news)
	}
}

// What limits a network ends to the second, and a verdict is kept for longer.
func TestChecker_Ready_ALimitIsAskedForEachTime(t *testing.T) {
	t.Parallel()
	var (
		limit error
		runs  int
	)
	opts := options(time.Now)
	opts.Limited = func(of string) error {
		if of != network {
			t.Errorf("asked of %q", of)
		}
		return limit
	}
	opts.Changed = func(network string, err error) {
		t.Errorf("%s changed to %v: whoever keeps the limit tells", network, err)
	}
	c := readiness.New(map[string]readiness.Check{network: func(context.Context) error { runs++; return nil }}, opts)
	out := errors.New("out")
	for _, want := range []error{nil, out, nil} {
		limit = want
		if err := c.Ready(t.Context(), network); !errors.Is(err, want) {
			t.Errorf("ready says %v, want %v", err, want)
		}
	}
	if runs != 1 {
		t.Errorf("%d checks, want one", runs)
	}
}
