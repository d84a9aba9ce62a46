package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

func schema(t *testing.T, db postgres.DB) (versions, tables int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM goose_db_version`).Scan(&versions); err != nil {
		t.Fatal(err)
	}
	const tablesSQL = `SELECT count(*) FROM information_schema.tables WHERE table_name IN ('calls', 'river_job')`
	if err := db.QueryRow(t.Context(), tablesSQL).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	return versions, tables
}

func TestMigrate_ReplicasMayRunItAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	const replicas = 4
	var wg sync.WaitGroup
	for range replicas {
		wg.Go(func() {
			if err := postgres.Migrate(t.Context(), url); err != nil {
				t.Errorf("one of several: %v", err)
			}
		})
	}
	wg.Wait()
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	versions, tables := schema(t, db)
	if tables != 2 {
		t.Errorf("tables = %d, want ours and the job queue's", tables)
	}
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Errorf("again: %v", err)
	}
	if after, _ := schema(t, db); after != versions {
		t.Errorf("versions after running again = %d, want %d", after, versions)
	}
	var locks int
	const locksSQL = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	if err := db.QueryRow(t.Context(), locksSQL).Scan(&locks); err != nil || locks != 0 {
		t.Errorf("advisory locks left = %d, %v", locks, err)
	}
}

func TestMigrate_WaitsForWhoeverMigratesNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	holder, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Release()
	if _, err := holder.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, postgres.MigrateLock); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := postgres.Migrate(ctx, url); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another migrates: %v, want the end of its context", err)
	}
}

func TestMarketNow_FollowsTheShiftAndTheServersClockOtherwise(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	distance := func() time.Duration {
		t.Helper()
		now, err := postgres.MarketNow(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		var server time.Time
		if err := db.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&server); err != nil {
			t.Fatal(err)
		}
		return server.Sub(now)
	}
	// What two statements take, with room for a busy machine.
	const slack = 30 * time.Second
	if d := distance(); d < 0 || d > slack {
		t.Errorf("unshifted: %v behind the server", d)
	}
	if shift, err := postgres.ShiftedClock(t.Context(), db); err != nil || shift != 0 {
		t.Errorf("shift = %v, %v; want 0", shift, err)
	}
	pgtest.Shift(t, db, 25*time.Hour+time.Microsecond)
	if d := distance() + 25*time.Hour; d < -time.Second || d > slack {
		t.Errorf("shifted by 25 h: %v off", d)
	}
	if shift, err := postgres.ShiftedClock(t.Context(), db); err != nil || shift != 25*time.Hour+time.Microsecond {
		t.Errorf("shift = %v, %v; want 25h0m0.000001s", shift, err)
	}
}

func TestOpen_SessionsAreUTCAndBoundedUnlessTheURLSaysMore(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	tests := map[string]struct{ more, setting, want string }{
		"the zone is UTC":                  {"", "TimeZone", "UTC"},
		"the zone is not for choosing":     {"&TimeZone=Europe/Berlin", "TimeZone", "UTC"},
		"statements are bounded":           {"", "statement_timeout", "30s"},
		"a URL may bound them otherwise":   {"&statement_timeout=5s", "statement_timeout", "5s"},
		"waits for locks are bounded":      {"", "lock_timeout", "10s"},
		"nothing is compiled":              {"", "jit", "off"},
		"the server knows who is speaking": {"", "application_name", "market"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := postgres.Open(t.Context(), url+c.more)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			var got string
			if err := db.QueryRow(t.Context(), `SELECT current_setting($1)`, c.setting).Scan(&got); err != nil || got != c.want {
				t.Errorf("%s = %q, %v; want %q", c.setting, got, err, c.want)
			}
		})
	}
}

func TestOpen_AnErrorNamesNoPassword(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"not a URL":               "postgres://me:hunter2@host:port/db",
		"an unknown mode":         "postgres://me:hunter2@127.0.0.1:1/db?sslmode=perhaps",
		"a server that is away":   "postgres://me:hunter2@127.0.0.1:1/db?sslmode=disable",
		"a number that is no one": "postgres://me:hunter2@127.0.0.1:1/db?pool_max_conns=many",
	} {
		_, err := postgres.Open(t.Context(), url)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want an error without the password", name, err)
		}
	}
}

func TestDatabase_NamesAnotherDatabaseOfTheServer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ server, want string }{
		"by network":     {"postgres://me:pw@db.example:5433/postgres?sslmode=require", "postgres://me:pw@db.example:5433/other?sslmode=require"},
		"by unix socket": {"postgres://postgres@/postgres?host=%2Ftmp%2Frun", "postgres://postgres@/other?host=%2Ftmp%2Frun"},
		"no URL":         {"host=/tmp dbname=postgres", ""},
	}
	for name, c := range tests {
		if got, err := postgres.Database(c.server, "other"); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestMigrate_AnOlderProgramLeavesANewerSchemaAlone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	const newerSQL = `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`
	if _, err := db.Exec(t.Context(), newerSQL); err != nil {
		t.Fatal(err)
	}
	before, _ := schema(t, db)
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatalf("a newer schema: %v", err)
	}
	if after, _ := schema(t, db); after != before {
		t.Errorf("versions = %d, want %d", after, before)
	}
}
