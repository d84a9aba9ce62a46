package notify

import (
	"sync"
	"sync/atomic"
	"testing"

	"market/internal/postgres/pgtest"
)

func TestStore_Raise_OfManyWhoSeeOneTroubleOneTellsOfIt(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var (
		wg     sync.WaitGroup
		raised atomic.Int32
		store  Store
	)
	for range 8 {
		wg.Go(func() {
			first, err := store.Raise(t.Context(), db, OwnOutage, "fleet", Outage{What: "something is wrong"})
			if err != nil {
				t.Error(err)
			}
			if first {
				raised.Add(1)
			}
		})
	}
	wg.Wait()
	if n := raised.Load(); n != 1 {
		t.Errorf("%d raised the notice, want 1", n)
	}
	if open, err := store.Open(t.Context(), db, OwnOutage); err != nil || len(open) != 1 || open[0].Subject != "fleet" || open[0].Text != "something is wrong" {
		t.Errorf("open notices %+v, %v; want the one", open, err)
	}
}

func TestStore_Settle_TheNextTroubleOfTheSubjectIsTold(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var store Store
	raise := func(kind Kind, subject string, want bool) {
		t.Helper()
		if raised, err := store.Raise(t.Context(), db, kind, subject, Outage{What: "something is wrong"}); err != nil || raised != want {
			t.Errorf("raise %s %q: %v, %v; want %v", kind, subject, raised, err, want)
		}
	}
	settle := func(want bool) {
		t.Helper()
		if settled, err := store.Settle(t.Context(), db, OwnOutage, "fleet"); err != nil || settled != want {
			t.Errorf("settle: %v, %v; want %v", settled, err, want)
		}
	}
	settle(false) // there is none
	raise(OwnOutage, "fleet", true)
	raise(OwnOutage, "fleet", false)
	raise(OwnOutage, "replica 1", true) // another subject
	raise("service_held", "fleet", true)
	settle(true)
	settle(false)
	raise(OwnOutage, "fleet", true)
}
