package pgtest_test

import (
	"testing"
	"time"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

func TestFreeze_OnlyAShiftMovesAFrozenClock(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	frozen := pgtest.Freeze(t, db)
	for range 3 {
		now, err := postgres.MarketNow(t.Context(), db)
		if err != nil || !now.Equal(frozen) {
			t.Errorf("market time %v, %v; want %v", now, err, frozen)
		}
	}
	pgtest.Shift(t, db, time.Microsecond)
	now, err := postgres.MarketNow(t.Context(), db)
	if want := frozen.Add(time.Microsecond); err != nil || !now.Equal(want) {
		t.Errorf("market time after a shift: %v, %v; want %v", now, err, want)
	}
}
