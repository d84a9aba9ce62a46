package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres/pgtest"
)

func TestHolding_TooMany(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		away, providers int
		want            bool
	}{
		"three of four":                       {3, 4, false},
		"four of four":                        {4, 4, true},
		"four of 39, of which a tenth is 3":   {4, 39, true},
		"four of 40, of which a tenth is 4":   {4, 40, false},
		"five of 40":                          {5, 40, true},
		"none of none":                        {0, 0, false},
		"a tenth of very many":                {1000, 10_000, false},
		"one more than a tenth of very many":  {1001, 10_000, true},
		"one less than a tenth of very many ": {999, 10_000, false},
	} {
		if got := HoldingRule.TooMany(tt.away, tt.providers); got != tt.want {
			t.Errorf("%s: too many %v", name, got)
		}
	}
}

const (
	besideSQL = `
INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses, state_since)
SELECT $2, $3, name, $4, probe_method, probe_path, probe_statuses, market_now() - interval '1 day' FROM services WHERE id = $1`
	rejectedSQL = `
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, latency_us, method, path, source, recorded_at, payer)
SELECT gen_random_uuid(), gen_random_uuid(), false, $1, $2, 'refused', 'rejected_by_service', 'caller', 'external', true, market_now(), 1000, 'GET', '/', ('198.51.' || n % 3 || '.1')::inet,
       market_now() - n * interval '1 minute', decode(repeat('0' || n % 3, 20), 'hex')
  FROM generate_series(1, 20) n`
)

// reject lists another service at a base URL that rejects everything.
func (s shelf) reject(t *testing.T, slug, baseURL string) {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	s.write(t, besideSQL, s.service.ID, id, slug, baseURL)
	s.write(t, rejectedSQL, id, s.endpoint.ID)
}

// holdRound runs one round and returns what was told of no service, and the services that are held.
func (s shelf) holdRound(t *testing.T) (told []HeldNotice, held []string) {
	t.Helper()
	all, err := NewHolder(s.db, HoldingRule).Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if n.Service == "" {
			told = append(told, n)
		}
	}
	rows, err := s.db.Query(t.Context(), `SELECT slug FROM services WHERE state = 'held' ORDER BY slug`)
	if err != nil {
		t.Fatal(err)
	}
	if held, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatal(err)
	}
	return told, held
}

// B136, for what is no failure: something between us and all services may answer in their place with what passes for a refusal of theirs. Nobody
// is held then, the operator is told once, and told again when it is over.
func TestHolder_SoManyAtOnceAreHeldByNobody(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	for n := range 4 {
		s.reject(t, fmt.Sprintf("of-%d", n), fmt.Sprintf("https://api.provider-%d.example", n))
	}
	told, held := s.holdRound(t)
	if len(held) != 0 || len(told) != 1 || told[0].Over || !strings.Contains(told[0].Text, "4 more would be, and with those of the last 24 h they are of 4 of 5 providers") {
		t.Errorf("held %v, told %+v", held, told)
	}
	if told, held := s.holdRound(t); len(held) != 0 || len(told) != 0 {
		t.Errorf("in the next round held %v, told %+v", held, told)
	}
	s.rewrite(t, "deliveries", `DELETE FROM deliveries d USING services s WHERE s.id = d.service_id AND s.slug = 'of-3'`)
	if told, held := s.holdRound(t); !slices.Equal(held, []string{"of-0", "of-1", "of-2"}) || len(told) != 1 || !told[0].Over {
		t.Errorf("when they are as many as may be: held %v, told %+v", held, told)
	}
	// What is held already, and nobody has looked at, counts.
	s.reject(t, "of-4", "https://api.provider-4.example")
	if told, held := s.holdRound(t); len(held) != 3 || len(told) != 1 || told[0].Over {
		t.Errorf("one more: held %v, told %+v", held, told)
	}
	pgtest.Shift(t, s.db, HoldingRule.Window-time.Microsecond)
	s.rewrite(t, "deliveries", `UPDATE deliveries SET recorded_at = market_now()`) // it goes on as it does
	if told, held := s.holdRound(t); len(held) != 3 || len(told) != 0 {
		t.Errorf("just inside the window: held %v, told %+v", held, told)
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	if told, held := s.holdRound(t); len(held) != 4 || len(told) != 1 || !told[0].Over {
		t.Errorf("a window after the others: held %v, told %+v", held, told)
	}
}

// A provider that breaks all its listings is one provider, and protects none of them.
func TestHolder_ManyListingsOfOneProviderAreHeld(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	for n := range 6 {
		s.reject(t, fmt.Sprintf("of-%d", n), fmt.Sprintf("https://api-%d.provider.example", n))
	}
	if told, held := s.holdRound(t); len(held) != 6 || len(told) != 0 {
		t.Errorf("held %v, told %+v", held, told)
	}
}

// Listings that have died are held by the rounds, and are nothing that our way out did.
func TestHolder_WhatIsHeldForItsSilenceDoesNotCount(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	for n := range 4 {
		slug := fmt.Sprintf("of-%d", n)
		s.reject(t, slug, fmt.Sprintf("https://api.provider-%d.example", n))
		if n == 3 {
			continue // this one lives, and rejects
		}
		s.write(t, `INSERT INTO service_probes (service_id, checked_at, unanswered, unanswered_since)
			SELECT id, market_now(), $2, market_now() - interval '7 days' FROM services WHERE slug = $1`, slug, usualRounds.Checks)
		s.write(t, `UPDATE services SET state = 'held', state_cause = 'review', state_actor = 'system', state_by = 'system', state_reason = 'silent',
			state_since = market_now() WHERE slug = $1`, slug)
	}
	if told, held := s.holdRound(t); len(held) != 4 || len(told) != 0 {
		t.Errorf("held %v, told %+v", held, told)
	}
}
