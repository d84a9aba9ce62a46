package pgtest

import (
	"testing"
	"time"

	"market/internal/postgres"
)

const freezeSQL = `
CREATE OR REPLACE FUNCTION market_now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT timestamptz '2026-01-02 03:04:05+00' + shift FROM market_clock $$`

// Freeze stops market_now() of a test's database and returns where it stands. From then on only Shift moves it, so that a test can meet
// a boundary to the microsecond.
func Freeze(t testing.TB, db postgres.DB) time.Time {
	t.Helper()
	if _, err := db.Exec(t.Context(), freezeSQL); err != nil {
		t.Fatalf("freeze market clock: %v", err)
	}
	now, err := postgres.MarketNow(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return now
}
