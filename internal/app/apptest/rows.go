package apptest

import (
	"testing"
	"time"

	"market/internal/call"
)

// Rows is what calls have left in the database.
type Rows struct {
	Calls      int // claims
	Deliveries int
	Refusals   int // counted, with or without a row of their own
	Trials     int // taken
}

const rowsSQL = `
SELECT (SELECT count(*) FROM calls), (SELECT count(*) FROM deliveries), (SELECT coalesce(sum(count), 0)::int FROM refusal_counts),
       (SELECT coalesce(sum(used), 0)::int FROM trial_days)`

// Rows counts what is there now.
func (w *World) Rows(t testing.TB) Rows {
	t.Helper()
	var r Rows
	if err := w.DB.QueryRow(t.Context(), rowsSQL).Scan(&r.Calls, &r.Deliveries, &r.Refusals, &r.Trials); err != nil {
		t.Fatal(err)
	}
	return r
}

const refusalsSQL = `
SELECT coalesce(sum(count), 0)::int
  FROM refusal_counts r JOIN endpoints e ON e.id = r.endpoint_id JOIN services s ON s.id = e.service_id
 WHERE s.slug = $1 AND reason = $2`

// Refusals is how many calls of a service were refused for a reason before any money moved, with or without a record of their own.
func (w *World) Refusals(t testing.TB, slug string, reason call.Reason) (n int) {
	t.Helper()
	if err := w.DB.QueryRow(t.Context(), refusalsSQL, slug, string(reason)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A Delivery is what is kept of a call and not shown to everybody.
type Delivery struct{ Origin, Source string }

const deliverySQL = `
SELECT origin, host(source) FROM deliveries WHERE call_id = $1`

// Delivery reads the delivery of a call.
func (w *World) Delivery(t testing.TB, id string) Delivery {
	t.Helper()
	var d Delivery
	if err := w.DB.QueryRow(t.Context(), deliverySQL, id).Scan(&d.Origin, &d.Source); err != nil {
		t.Fatalf("delivery of call %q: %v", id, err)
	}
	return d
}

const restSQL = `
SELECT coalesce((SELECT until - market_now() FROM cooldowns c JOIN services s ON s.id = c.service_id
                  WHERE s.slug = $1 AND until > market_now()), '0'::interval)`

// Rest is how long a service still cools down; zero where it does not. The gate may hear of it a moment later.
func (w *World) Rest(t testing.TB, slug string) time.Duration {
	t.Helper()
	var rest time.Duration
	if err := w.DB.QueryRow(t.Context(), restSQL, slug).Scan(&rest); err != nil {
		t.Fatal(err)
	}
	return rest
}

const sinceSQL = `
SELECT extract(epoch FROM market_now() - date_trunc($1, market_now(), 'UTC'))::float8`

// ShiftInto moves the market's time forward to a place in the next minute, hour or day, so that nothing that is counted by that unit
// falls to both sides of its end while a test goes on.
func (w *World) ShiftInto(t testing.TB, unit string, length, place time.Duration) {
	t.Helper()
	var seconds float64
	if err := w.DB.QueryRow(t.Context(), sinceSQL, unit).Scan(&seconds); err != nil {
		t.Fatal(err)
	}
	w.Shift(t, length-time.Duration(seconds*float64(time.Second))+place)
}
