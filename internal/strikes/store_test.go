package strikes_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

const fold = time.Minute

// folding counts as production does; every failure of counting is a strike of its own.
var (
	folding  = strikes.NewStore(strikes.Policy{Limit: 3, Window: 24 * time.Hour, Fold: fold})
	counting = strikes.NewStore(strikes.Policy{Limit: 3, Window: 24 * time.Hour})
)

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

// fail records a failed delivery and adds it as the recorder does: in one transaction, which locks the service in a statement of its own.
func (s shelf) fail(ctx context.Context, store strikes.Store, askedAt time.Time) (opened bool, delivery uuid.UUID, err error) {
	delivery = uuid.Must(uuid.NewV7())
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := (catalog.Store{}).Lock(ctx, tx, s.service.ID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deliverySQL, delivery, uuid.Must(uuid.NewV7()), s.service.ID, s.service.Endpoints[0].ID, askedAt); err != nil {
			return err
		}
		added, err := store.Add(ctx, tx, strikes.Failure{Service: s.service.ID, Delivery: delivery, AskedAt: askedAt})
		opened = added.Opened
		return err
	})
	return opened, delivery, err
}

func (s shelf) mustFail(t *testing.T, store strikes.Store, askedAt time.Time) (opened bool, delivery uuid.UUID) {
	t.Helper()
	opened, delivery, err := s.fail(t.Context(), store, askedAt)
	if err != nil {
		t.Fatal(err)
	}
	return opened, delivery
}

// A row is one strike as the database keeps it.
type row struct {
	State                            string
	OpenedAt, FoldsUntil, EvidenceAt time.Time
	Deliveries                       int
}

const rowsSQL = `
SELECT state, opened_at, folds_until, last_evidence_at,
       (SELECT count(*) FROM strike_deliveries WHERE strike_id = strikes.id)
  FROM strikes WHERE service_id = $1 ORDER BY opened_at, id`

func (s shelf) rows(t *testing.T) []row {
	t.Helper()
	found, err := s.db.Query(t.Context(), rowsSQL, s.service.ID)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (s shelf) countOpen(t *testing.T, store strikes.Store) int {
	t.Helper()
	n, err := store.CountOpen(t.Context(), s.db, s.service.ID)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestStore_Add_JoinsWhatWasAskedBeforeTheFoldEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fromFoldEnd time.Duration
		opens       bool
	}{
		"asked just before the fold ends joins":       {-time.Microsecond, false},
		"asked exactly at the end is another failure": {0, true},
		"asked just after the end is another failure": {time.Microsecond, true},
		"asked before the strike even opened joins":   {-2 * fold, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			if opened, _ := s.mustFail(t, folding, s.opened); !opened {
				t.Fatal("the first failure opens no strike")
			}
			pgtest.Shift(t, s.db, 2*fold) // when it is recorded does not matter
			opened, _ := s.mustFail(t, folding, s.opened.Add(fold+tt.fromFoldEnd))
			if opened != tt.opens {
				t.Errorf("opened = %v, want %v", opened, tt.opens)
			}
			want := map[bool]int{false: 1, true: 2}[tt.opens]
			if rows := s.rows(t); len(rows) != want || s.countOpen(t, folding) != want {
				t.Errorf("%d strikes, of which %d count; want %d", len(rows), s.countOpen(t, folding), want)
			}
		})
	}
}

func TestStore_Add_JoiningMovesTheEvidenceAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustFail(t, folding, s.opened)
	pgtest.Shift(t, s.db, time.Hour)
	s.mustFail(t, folding, s.opened)

	rows := s.rows(t)
	if len(rows) != 1 {
		t.Fatalf("%d strikes, want 1", len(rows))
	}
	got := rows[0]
	if !got.OpenedAt.Equal(s.opened) || !got.FoldsUntil.Equal(s.opened.Add(fold)) || got.Deliveries != 2 {
		t.Errorf("strike = %+v, want it opened at %v, folding for %s, with 2 deliveries", got, s.opened, fold)
	}
	if want := s.opened.Add(time.Hour); !got.EvidenceAt.Equal(want) {
		t.Errorf("last evidence at %v, want %v", got.EvidenceAt, want)
	}
}

const clearSQL = `UPDATE strikes SET state = 'cleared', cleared_at = market_now(), cleared_by = $2 WHERE service_id = $1`

func TestStore_Add_JoinsAClearedStrikeWithoutCounting(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	_, delivery := s.mustFail(t, folding, s.opened)
	if _, err := s.db.Exec(t.Context(), clearSQL, s.service.ID, delivery); err != nil {
		t.Fatal(err)
	}
	if opened, _ := s.mustFail(t, folding, s.opened); opened {
		t.Error("a call of the same incident opened a strike")
	}
	if rows := s.rows(t); len(rows) != 1 || rows[0].State != "cleared" || rows[0].Deliveries != 2 {
		t.Errorf("strikes = %+v, want the one, still cleared, with 2 deliveries", rows)
	}
	if n := s.countOpen(t, folding); n != 0 {
		t.Errorf("%d strikes count, want none", n)
	}
}

func TestStore_Add_JoinsTheLatestStrikeOnly(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustFail(t, folding, s.opened)
	pgtest.Shift(t, s.db, fold)
	if opened, _ := s.mustFail(t, folding, s.opened.Add(fold)); !opened {
		t.Fatal("a failure asked after the fold opens no strike")
	}
	if opened, _ := s.mustFail(t, folding, s.opened); opened {
		t.Error("a failure asked before the fold of the latest strike ended opened one")
	}
	if rows := s.rows(t); len(rows) != 2 || rows[0].Deliveries != 1 || rows[1].Deliveries != 2 {
		t.Errorf("strikes = %+v, want the second to have the later evidence", rows)
	}
}

func TestStore_Add_WithoutAFoldEveryFailureIsAStrike(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for n := 1; n <= 3; n++ {
		if opened, _ := s.mustFail(t, counting, s.opened.Add(-time.Hour)); !opened {
			t.Errorf("failure %d opened no strike", n)
		}
		if got := s.countOpen(t, counting); got != n {
			t.Errorf("%d strikes count after %d failures", got, n)
		}
	}
}

func TestStore_Add_TheStrikesOfAnotherServiceAreNotJoined(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustFail(t, folding, s.opened)
	other := uuid.Must(uuid.NewV7())
	const copySQL = `
INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses)
SELECT $2, 'other', name, base_url, probe_method, probe_path, probe_statuses FROM services WHERE id = $1`
	if _, err := s.db.Exec(t.Context(), copySQL, s.service.ID, other); err != nil {
		t.Fatal(err)
	}
	first := s.service.ID
	s.service.ID = other
	if opened, _ := s.mustFail(t, folding, s.opened); !opened {
		t.Error("a failure joined the strike of another service")
	}
	s.service.ID = first
	if n := s.countOpen(t, folding); n != 1 {
		t.Errorf("%d strikes of the first service count, want 1", n)
	}
}

func TestStore_CountOpen_AStrikeCountsUntilTheWindowHasPassed(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustFail(t, folding, s.opened)
	pgtest.Shift(t, s.db, 24*time.Hour-time.Microsecond)
	if n := s.countOpen(t, folding); n != 1 {
		t.Errorf("just inside the window %d strikes count, want 1", n)
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	if n := s.countOpen(t, folding); n != 0 {
		t.Errorf("exactly a window later %d strikes count, want 0", n)
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	if n := s.countOpen(t, folding); n != 0 {
		t.Errorf("just outside the window %d strikes count, want 0", n)
	}
}

func TestStore_Add_OneHiccupIsOneStrike(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const failures = 50
	var (
		wg    sync.WaitGroup
		opens atomic.Int32
	)
	for range failures {
		wg.Go(func() {
			opened, _, err := s.fail(t.Context(), folding, s.opened)
			if err != nil {
				t.Error(err)
			}
			if opened {
				opens.Add(1)
			}
		})
	}
	wg.Wait()
	if n := opens.Load(); n != 1 {
		t.Errorf("%d failures say that they opened a strike, want 1", n)
	}
	if rows := s.rows(t); len(rows) != 1 || rows[0].Deliveries != failures {
		t.Errorf("strikes = %+v, want one with %d deliveries", rows, failures)
	}
}
