package pgtest_test

import (
	"sync"
	"testing"
	"time"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

func TestNew_DatabasesAreFreshAndStrangersToEachOther(t *testing.T) {
	t.Parallel()
	const databases = 8
	var wg sync.WaitGroup
	for range databases {
		pool := pgtest.New(t)
		wg.Go(func() {
			if _, err := pool.Exec(t.Context(), `CREATE TABLE mine ()`); err != nil {
				t.Errorf("a database of its own: %v", err)
			}
			var services int
			if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM services`).Scan(&services); err != nil || services != 0 {
				t.Errorf("services = %d, %v; want none", services, err)
			}
		})
	}
	wg.Wait()
}

func TestShift_MovesMarketTimeOfOneDatabaseOnly(t *testing.T) {
	t.Parallel()
	moved, still := pgtest.New(t), pgtest.New(t)
	pgtest.Shift(t, moved, time.Hour)
	pgtest.Shift(t, moved, 30*time.Minute)
	for name, c := range map[string]struct {
		db   postgres.DB
		want time.Duration
	}{
		"shifted twice": {moved, 90 * time.Minute},
		"never shifted": {still, 0},
	} {
		if got, err := postgres.ShiftedClock(t.Context(), c.db); err != nil || got != c.want {
			t.Errorf("%s: shift = %v, %v; want %v", name, got, err, c.want)
		}
	}
}
