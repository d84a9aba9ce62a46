package delivery

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/outage"
	"market/internal/postgres/pgtest"
)

// A street is a row of shelves over one database: one service each, of as many providers, all of which have served somebody an hour ago.
type street struct {
	shelf
	shops []shelf
	guard *Guard // of this process
}

// newStreet returns the services of so many providers, one after the other in turn.
func newStreet(t *testing.T, services, providers int) street {
	t.Helper()
	s := street{shelf: newShelf(t)}
	s.guard = s.guardOf(s.owner)
	for n := range services {
		shop := s.open(t, fmt.Sprintf("shop-%d", n), fmt.Sprintf("https://api-%d.provider-%d.example", n, n%providers))
		s.record(t, shop.trial(t).served())
		s.shops = append(s.shops, shop)
	}
	pgtest.Shift(t, s.db, time.Hour)
	return s
}

func (s street) guardOf(replica uuid.UUID) *Guard {
	return NewGuard(s.db, replica, NewReview(s.db, policy))
}

// open puts a service on the shelf that nobody was served by.
func (s street) open(t *testing.T, slug, baseURL string) shelf {
	t.Helper()
	listing, err := json.Marshal(map[string]any{"slug": slug, "name": slug, "base_url": baseURL, "probe": map[string]any{"path": "/healthz", "statuses": []string{"200"}},
		"endpoints": []any{map[string]any{"method": "GET", "path": "/", "price_usd": "0.01", "trial_calls_per_day": 100}}})
	if err != nil {
		t.Fatal(err)
	}
	draft, err := catalog.ParseDraft(listing, catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	shop := s.shelf
	err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		shop.service, err = catalog.Store{}.Create(t.Context(), tx, draft)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	shop.endpoint = shop.service.Endpoints[0]
	return shop
}

// walkedBy says which replica walked a call.
func (d Delivery) walkedBy(replica uuid.UUID) Delivery {
	d.Replica = replica
	return d
}

// failsOf records that shops fail a call that this replica asks now.
func (s street) failsOf(t *testing.T, shops ...shelf) {
	t.Helper()
	for _, shop := range shops {
		s.record(t, shop.trial(t).walkedBy(s.owner).failed())
	}
}

func (s street) tick(t *testing.T, soundings outage.Soundings) []Telling {
	t.Helper()
	told, err := s.guard.Tick(t.Context(), soundings)
	if err != nil {
		t.Fatal(err)
	}
	return told
}

// outages are all that were, the first first.
func (s street) outages(t *testing.T) []outage.Outage {
	t.Helper()
	all, err := outage.Store{}.List(t.Context(), s.db, uuid.UUID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// A blame is what the market holds against its services.
type blame struct{ Strikes, Cooldowns, Delisted, Services, Excused int }

const blameSQL = `
SELECT (SELECT count(*) FROM strikes WHERE state = 'open'), (SELECT count(*) FROM cooldowns WHERE until > market_now()),
       (SELECT count(*) FROM services WHERE state = 'delisted'),
       (SELECT count(*) FROM deliveries WHERE outcome = 'failed' AND party = 'service'),
       (SELECT count(*) FROM deliveries WHERE excused_by IS NOT NULL AND party = 'platform')`

func (s street) wantBlame(t *testing.T, when string, want blame) {
	t.Helper()
	rows, err := s.db.Query(t.Context(), blameSQL)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[blame])
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

// wantParty says whose doing a call is told to have been.
func (s street) wantParty(t *testing.T, when string, id call.ID, want call.Party) {
	t.Helper()
	r, err := Lookup(t.Context(), s.db, id)
	if err != nil {
		t.Fatal(err)
	}
	if r.Party != want {
		t.Errorf("%s: the call ended %s by %s, want by %s", when, r.Outcome, r.Party, want)
	}
}
