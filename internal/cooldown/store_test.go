package cooldown_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/catalog"
	"market/internal/cooldown"
	"market/internal/postgres/pgtest"
)

const rest = time.Minute

// A shelf is one listed service with one endpoint, and market time that stands still.
type shelf struct {
	db      *pgxpool.Pool
	service catalog.Service
	opened  time.Time // market time, until the test shifts it
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	s := shelf{db: pgtest.New(t)}
	s.opened = pgtest.Freeze(t, s.db)
	draft, err := catalog.ParseDraft([]byte(`{"slug":"weather","name":"Weather","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		s.service, err = catalog.Store{}.Create(t.Context(), tx, draft)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const deliverySQL = `
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, method, path, source)
VALUES ($1, $2, true, $3, $4, 'failed', 'upstream_5xx', 'service', 'external', true, $5, 'GET', '/', '192.0.2.1')`

// start records a failed delivery and lets the service rest for it.
func (s shelf) start(ctx context.Context, askedAt time.Time, rest time.Duration) (delivery uuid.UUID, err error) {
	delivery = uuid.Must(uuid.NewV7())
	return delivery, pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, deliverySQL, delivery, uuid.Must(uuid.NewV7()), s.service.ID, s.service.Endpoints[0].ID, askedAt); err != nil {
			return err
		}
		return cooldown.Store{}.Start(ctx, tx, s.service.ID, delivery, rest)
	})
}

func (s shelf) mustStart(t *testing.T, askedAt time.Time, rest time.Duration) uuid.UUID {
	t.Helper()
	delivery, err := s.start(t.Context(), askedAt, rest)
	if err != nil {
		t.Fatal(err)
	}
	return delivery
}

const currentSQL = `SELECT until, started_by FROM cooldowns WHERE service_id = $1`

// current returns the service's one row.
func (s shelf) current(ctx context.Context) (until time.Time, startedBy uuid.UUID, err error) {
	err = s.db.QueryRow(ctx, currentSQL, s.service.ID).Scan(&until, &startedBy)
	return until, startedBy, err
}

func (s shelf) mustCurrent(t *testing.T) (until time.Time, startedBy uuid.UUID) {
	t.Helper()
	until, startedBy, err := s.current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return until, startedBy
}

func TestStore_Start_AFailureAfterTheRestStartsAnotherHoweverLongAgoItsCallWasAsked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fromEnd time.Duration
		anew    bool
	}{
		"just before the rest ended": {-time.Microsecond, false},
		"exactly when it ended":      {0, true},
		"long after it ended":        {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			first := s.mustStart(t, s.opened, rest)
			until, by := s.mustCurrent(t)
			if !until.Equal(s.opened.Add(rest)) || by != first {
				t.Fatalf("rests until %v by %s, want %v by %s", until, by, s.opened.Add(rest), first)
			}
			pgtest.Shift(t, s.db, rest+tt.fromEnd)
			second := s.mustStart(t, s.opened, rest)

			wantUntil, wantBy := s.opened.Add(rest), first
			if tt.anew {
				wantUntil, wantBy = s.opened.Add(2*rest+tt.fromEnd), second
			}
			if until, by := s.mustCurrent(t); !until.Equal(wantUntil) || by != wantBy {
				t.Errorf("rests until %v by %s, want %v by %s", until, by, wantUntil, wantBy)
			}
		})
	}
}

func TestStore_Start_ALongerRestOfTheSameIncidentDoesNotExtendIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustStart(t, s.opened, rest)
	pgtest.Shift(t, s.db, rest/2)
	s.mustStart(t, s.opened.Add(rest/4), 10*rest)
	if until, _ := s.mustCurrent(t); !until.Equal(s.opened.Add(rest)) {
		t.Errorf("rests until %v, want %v", until, s.opened.Add(rest))
	}
}

func TestStore_Start_OfManyFailuresAtOnceOneStartsTheRest(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const failures = 20
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen = map[uuid.UUID]bool{}
	)
	for i := range failures {
		wg.Go(func() {
			// Each asks for another rest: whoever comes later must not replace the first.
			delivery, err := s.start(t.Context(), s.opened, rest+time.Duration(i)*time.Second)
			if err != nil {
				t.Error(err)
				return
			}
			until, by, err := s.current(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[by] = true
			if by == delivery && !until.Equal(s.opened.Add(rest+time.Duration(i)*time.Second)) {
				t.Errorf("the rest that delivery %d started ends at %v", i, until)
			}
		})
	}
	wg.Wait()
	if len(seen) != 1 {
		t.Errorf("%d different failures were seen to have started the rest, want 1", len(seen))
	}
}

func TestStore_End_EndsARestThatRuns(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	end := func() bool {
		ended, err := cooldown.Store{}.End(t.Context(), s.db, s.service.ID)
		if err != nil {
			t.Fatal(err)
		}
		return ended
	}
	if end() {
		t.Error("a rest ended that never began")
	}
	first := s.mustStart(t, s.opened, rest)
	pgtest.Shift(t, s.db, rest/2)
	if !end() || end() {
		t.Error("a rest does not end once")
	}
	if until, by := s.mustCurrent(t); !until.Equal(s.opened.Add(rest/2)) || by != first {
		t.Errorf("it ended at %v, started by %s; want %v, %s", until, by, s.opened.Add(rest/2), first)
	}
	second := s.mustStart(t, s.opened.Add(rest/2), rest)
	if until, by := s.mustCurrent(t); !until.Equal(s.opened.Add(rest/2+rest)) || by != second {
		t.Errorf("the next failure starts none: until %v by %s", until, by)
	}
}
