package source

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

// hosted is a facilitator with a balance.
func hosted() Source {
	return Source{Name: FacilitatorName("hosted"), Kind: KindFacilitator, Metered: true, RunsOut: Prepaid, RetryWindow: time.Hour,
		Guard: Guard{Floor: 5000, SurgePercent: 300}}
}

// A fleet is two replicas over one database, and what its hooks were told.
type fleet struct {
	t        *testing.T
	url      string
	db       *pgxpool.Pool
	replicas [2]*Registry
	waiting  Waiting
	since    time.Time // of the outage that was told last
	again    int       // how often it was told again

	mu   sync.Mutex
	told []string
	fail string // the hook that fails
	slow bool   // what waits takes long to be resumed
}

func newFleet(t *testing.T, sources ...Source) *fleet {
	t.Helper()
	f := &fleet{t: t, url: pgtest.URL(t)}
	for i := range f.replicas {
		f.db = newPool(t, f.url)
		hooks := f.hooks()
		hooks.Out = func(_ context.Context, _ pgx.Tx, s Source, o Out) error { return f.out(s, o) }
		f.replicas[i] = New(f.db, time.Now, sources, hooks)
	}
	return f
}

func newPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, func(c *pgxpool.Config) { c.MaxConns = 4 })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func (f *fleet) hooks() Hooks {
	return Hooks{
		Out:  func(_ context.Context, _ pgx.Tx, s Source, o Out) error { return f.tell("out", s, o.Why) },
		Back: func(_ context.Context, _ pgx.Tx, s Source, was Why) error { return f.tell("back", s, was) },
		Resume: func(ctx context.Context, tx pgx.Tx, s Source) error {
			if f.slow {
				if _, err := tx.Exec(ctx, `SELECT pg_sleep(20)`); err != nil {
					return err
				}
			}
			return f.tell("resume", s, 0)
		},
		Waiting: func(context.Context, string) (Waiting, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.waiting, nil
		},
		OnError: func(err error) {
			if f.fail == "" {
				f.t.Error(err)
			}
		},
	}
}

func (f *fleet) tell(hook string, s Source, why Why) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == hook {
		return fmt.Errorf("%s cannot be told", hook)
	}
	if why != 0 {
		hook += " " + why.String()
	}
	f.told = append(f.told, hook)
	return nil
}

// wantTold looks at what was told since it was looked at last.
func (f *fleet) wantTold(when string, want ...string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if fmt.Sprint(f.told) != fmt.Sprint(want) {
		f.t.Errorf("%s: told %v, want %v", when, f.told, want)
	}
	f.told = nil
}

// meter is that of one of the replicas of the first source.
func (f *fleet) meter(replica int) *Meter { return f.replicas[replica].order[0] }

func (f *fleet) shift(d time.Duration) {
	f.t.Helper()
	pgtest.Shift(f.t, f.db, d)
}

// load is what a notification does.
func (f *fleet) load() {
	f.t.Helper()
	for _, r := range f.replicas {
		if err := r.Load(f.t.Context(), f.db); err != nil {
			f.t.Fatal(err)
		}
	}
}

// noon moves market time to a bit after noon of the next day, so that no test is met by a midnight.
func (f *fleet) noon() {
	f.t.Helper()
	now := f.now()
	f.shift(nextDay(now).Add(12*time.Hour + time.Minute).Sub(now))
}

func (f *fleet) now() time.Time {
	f.t.Helper()
	now, err := postgres.MarketNow(f.t.Context(), f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	return now
}

func (f *fleet) standing() Standing {
	f.t.Helper()
	all, err := f.replicas[0].Standings(f.t.Context(), f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	return all[0]
}

// must reserves.
func (f *fleet) must(m *Meter, class Class, n int64) *Grant {
	f.t.Helper()
	g, err := m.Reserve(f.t.Context(), class, n)
	if err != nil {
		f.t.Fatalf("reserve %d: %v", n, err)
	}
	return g
}

// refused is a reservation that must not go through.
func (f *fleet) refused(m *Meter, class Class, n int64, want Why) *LimitError {
	f.t.Helper()
	g, err := m.Reserve(f.t.Context(), class, n)
	limit, ok := err.(*LimitError)
	if g != nil || !ok || limit.Why != want {
		f.t.Fatalf("reserve %d: %v, %v; want %v", n, g, err, want)
	}
	return limit
}

// ask has a source say something to a request.
func (f *fleet) ask(m *Meter, v Verdict) *Grant {
	f.t.Helper()
	g := f.must(m, Settlement, 1)
	g.Report(f.t.Context(), v)
	return g
}

// at once has a number of requesters over both replicas do something, and counts how often it came to something.
func (f *fleet) atOnce(requesters int, do func(m *Meter) bool) int {
	var (
		wg sync.WaitGroup
		mu sync.Mutex
		n  int
	)
	for i := range requesters {
		wg.Go(func() {
			if do(f.meter(i % 2)) {
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return n
}

var (
	worked   = Verdict{Kind: Worked}
	noCredit = Verdict{Kind: Refused, Said: "HTTP 402"}
)

// tryNow is somebody who has topped the source up.
func (f *fleet) tryNow() {
	f.t.Helper()
	err := pgx.BeginFunc(f.t.Context(), f.db, func(tx pgx.Tx) error { return f.replicas[0].TryNow(f.t.Context(), tx, f.meter(0).of.Name) })
	if err != nil {
		f.t.Fatal(err)
	}
}

// out counts what is told again of one outage: it makes no second notice.
func (f *fleet) out(s Source, o Out) error {
	f.mu.Lock()
	if o.Since.Equal(f.since) && f.fail != "out" {
		f.again++
		f.mu.Unlock()
		return nil
	}
	f.mu.Unlock()
	err := f.tell("out", s, o.Why)
	if err == nil {
		f.mu.Lock()
		f.since = o.Since
		f.mu.Unlock()
	}
	return err
}
