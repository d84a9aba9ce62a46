package delivery

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

func (s shelf) queue(t *testing.T, offset, limit int) StrikeQueue {
	t.Helper()
	q, err := s.recorder.StrikesOfAll(t.Context(), offset, limit)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func slugs(q StrikeQueue) string {
	var all []string
	for _, s := range q.Services {
		all = append(all, s.Slug)
	}
	return strings.Join(all, " ")
}

func TestRecorder_StrikesOfAll_ShowsWhatIsToBeLookedAtFirst(t *testing.T) {
	t.Parallel()
	s := newShelf(t) // weather, which has no strike
	if q := s.queue(t, 0, 10); q.Total != 0 || len(q.Services) != 0 || len(q.Strikes) != 0 {
		t.Errorf("without a strike: %+v", q)
	}
	several, single, nearly, cleared := s.beside(t, "several"), s.beside(t, "single"), s.beside(t, "nearly"), s.beside(t, "cleared")
	for n, from := range []string{"192.0.2.1", "198.51.100.1"} {
		several.record(t, several.asked(t).by(byte(1+n)).called(from).failed())
		nearly.record(t, nearly.asked(t).by(1).called("192.0.2.1").failed())
		pgtest.Shift(t, s.db, rest)
	}
	cleared.fail(t)
	pgtest.Shift(t, s.db, rest)
	cleared.record(t, cleared.asked(t).served())
	single.record(t, single.asked(t).called("192.0.2.1").failed())

	q := s.queue(t, 0, 10)
	if got, want := slugs(q), "nearly single several"; got != want || q.Total != 3 {
		t.Fatalf("%s of %d, want %s", got, q.Total, want)
	}
	var of []string
	for _, strike := range q.Strikes {
		for _, service := range q.Services {
			if service.Service == strike.Service {
				of = append(of, service.Slug)
			}
		}
	}
	if got, want := strings.Join(of, " "), "nearly nearly single several several"; got != want {
		t.Errorf("strikes of %s, want %s", got, want)
	}
	first := q.Services[0]
	if !first.Concentrated || first.Words != "2 of 2 from one address in 60 s" || first.Open != 2 || first.Next != "the next failure delists it: strike 3 of 3" {
		t.Errorf("%+v", first)
	}
	if last := q.Services[2]; last.Concentrated || last.Words != "2 from 2 networks in 60 s" {
		t.Errorf("%+v", last)
	}
	for offset, want := range []string{"nearly", "single", "several", ""} {
		if page := s.queue(t, offset, 1); slugs(page) != want || page.Total != 3 {
			t.Errorf("page after %d: %s of %d, want %s", offset, slugs(page), page.Total, want)
		}
	}
	// A strike counts until it leaves the window, and then neither does its evidence: here two services keep their second one for a moment more.
	pgtest.Shift(t, s.db, policy.Window-2*rest-time.Microsecond)
	if got, want := slugs(s.queue(t, 0, 10)), "single nearly several"; got != want {
		t.Errorf("just before the end of the window: %s, want %s", got, want)
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	if got, want := slugs(s.queue(t, 0, 10)), "single"; got != want {
		t.Errorf("at the end of the window: %s, want %s", got, want)
	}
}

func TestRecorder_StrikesOf_ShowsEveryStrikeWhateverBecameOfIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	failed := s.fail(t)
	pgtest.Shift(t, s.db, rest)
	clearing := s.asked(t).served()
	s.record(t, clearing)
	pgtest.Shift(t, s.db, policy.Window)
	s.fail(t)
	pgtest.Shift(t, s.db, policy.Window)
	s.fail(t)

	found := s.strikes(t)
	if len(found.Strikes) != 3 || found.Summary.Open != 1 || found.Summary.Spread.Evidence != 1 {
		t.Fatalf("%+v", found)
	}
	first := found.Strikes[0]
	if first.State != "cleared" || first.Counts || first.ClearedBy != clearing.Call || !first.ClearedAt.Equal(s.opened.Add(rest)) || first.Calls[0] != failed.Call {
		t.Errorf("%+v, want it cleared by %s", first, clearing.Call)
	}
	if old, newest := found.Strikes[1], found.Strikes[2]; old.State != "open" || old.Counts || !newest.Counts {
		t.Errorf("%+v and %+v, want only the newest to count", old, newest)
	}
}

func TestRecorder_StrikesOf_SaysWhoClearedWithinTheWindow(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for range 2 {
		s.fail(t)
		pgtest.Shift(t, s.db, rest)
	}
	s.record(t, s.trial(t).called("192.0.2.1").served()) // two strikes at once
	at := s.opened.Add(2 * rest)
	for n := range 2 {
		s.fail(t)
		pgtest.Shift(t, s.db, rest)
		s.record(t, s.trial(t).called(fmt.Sprintf("192.0.2.%d", n)).served())
	}
	got := s.strikes(t).Summary
	if want := (strikes.Clears{Times: 3, Trials: 3, Sources: 1, Addresses: 2, Last: at.Add(2 * rest)}); got.Clears != want {
		t.Errorf("%+v, want %+v", got.Clears, want)
	}
	if got.ClearedWords != "cleared 3 times by trial calls from one network" {
		t.Errorf("%q", got.ClearedWords)
	}
	// A window after the first clear the others are left, and after them none.
	pgtest.Shift(t, s.db, policy.Window-2*rest)
	if n := s.strikes(t).Summary.Clears.Times; n != 2 {
		t.Errorf("%d clears, want 2", n)
	}
	pgtest.Shift(t, s.db, 2*rest)
	if words := s.strikes(t).Summary.ClearedWords; words != "" {
		t.Errorf("%q, want nothing", words)
	}
}

// A hiccup under load has thousands of deliveries: they are counted, and a few are shown.
func TestRecorder_StrikesOf_CountsAllEvidenceAndShowsItsEnds(t *testing.T) {
	t.Parallel()
	const more = 5_000
	s := newShelf(t)
	first := s.fail(t)
	s.write(t, `
WITH made AS (
	INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, method, path, source, payer, recorded_at)
	SELECT gen_random_uuid(), gen_random_uuid(), false, $1, $2, 'failed', 'upstream_5xx', 'service', 'external', true, market_now(), 'GET', '/',
	       '198.51.100.0'::inet + (n % 200), decode(lpad(to_hex(n % 10), 40, '0'), 'hex'), market_now() + n * interval '1 millisecond'
	  FROM generate_series(1, $3) n
	RETURNING id
)
INSERT INTO strike_deliveries (strike_id, delivery_id) SELECT (SELECT id FROM strikes), id FROM made`, s.service.ID, s.endpoint.ID, more)
	strike := s.strikes(t).Strikes[0]
	if strike.Spread.Evidence != more+1 || strike.Spread.Sources != 2 || strike.Spread.FromLargest != more || strike.Spread.Addresses != 200 ||
		strike.Spread.Payers != 11 || strike.Spread.ByLargest != more/10 || strike.Spread.Span() != more*time.Millisecond {
		t.Errorf("%+v", strike.Spread)
	}
	if len(strike.Calls) != 100 || len(strike.Evidence) != evidenceMax {
		t.Fatalf("%d calls and %d deliveries are shown", len(strike.Calls), len(strike.Evidence))
	}
	if strike.Calls[0] != first.Call || strike.Evidence[0].Call != first.Call {
		t.Errorf("the first call is not shown first")
	}
	half := strike.Evidence[evidenceMax/2]
	if want := s.opened.Add((more - evidenceMax/2 + 1) * time.Millisecond); !half.RecordedAt.Equal(want) {
		t.Errorf("after the oldest comes one of %s, want the newest from %s on", half.RecordedAt, want)
	}
	if n := len(s.queue(t, 0, 10).Strikes[0].Evidence); n != evidenceFew {
		t.Errorf("%d deliveries are shown in the queue, want %d", n, evidenceFew)
	}
}

func TestRecorder_StrikesOfAll_TwoHundredServicesAreOnePageAfterTheOther(t *testing.T) {
	t.Parallel()
	const services = 200
	s := newShelf(t)
	s.write(t, `
INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses, state, state_reason)
SELECT gen_random_uuid(), 'made-' || n, 'Made', s.base_url, s.probe_method, s.probe_path, s.probe_statuses, 'listed', 'created'
  FROM services s, generate_series(1, $1) n`, services)
	s.write(t, `
WITH opened AS (
	INSERT INTO strikes (id, service_id, opened_at, folds_until, last_evidence_at)
	SELECT gen_random_uuid(), id, market_now() - n * interval '1 minute', market_now(), market_now() - n * interval '1 minute'
	  FROM services, generate_series(1, 3) n WHERE slug LIKE 'made-%'
	RETURNING id, service_id, opened_at
), made AS (
	INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, method, path, source, recorded_at)
	SELECT gen_random_uuid(), o.id, true, o.service_id, $1, 'failed', 'upstream_5xx', 'service', 'external', true, o.opened_at, 'GET', '/', '192.0.2.1', o.opened_at
	  FROM opened o
	RETURNING id, call_id
)
INSERT INTO strike_deliveries (strike_id, delivery_id) SELECT call_id, id FROM made`, s.endpoint.ID)
	seen := map[call.ID]bool{}
	for offset := 0; offset < services; offset += 100 {
		q := s.queue(t, offset, 100)
		if q.Total != services || len(q.Services) != 100 || len(q.Strikes) != 300 {
			t.Fatalf("%d services with %d strikes of %d, want 100 with 300 of %d", len(q.Services), len(q.Strikes), q.Total, services)
		}
		for _, one := range q.Services {
			if one.Open != 3 || one.Spread.Evidence != 3 || seen[one.Service] {
				t.Errorf("%+v, seen before: %v", one, seen[one.Service])
			}
			seen[one.Service] = true
		}
	}
}

// What stands in an address is anybody's number.
func TestRecorder_StrikesOfAll_IsEmptyBehindItsEnd(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	for _, offset := range []int{1, math.MaxInt - 10, math.MaxInt} {
		if q := s.queue(t, offset, 10); q.Total != 1 || len(q.Services) != 0 || len(q.Strikes) != 0 {
			t.Errorf("after %d: %+v", offset, q)
		}
	}
}
