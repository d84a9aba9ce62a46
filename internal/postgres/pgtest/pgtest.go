package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/postgres"
)

// poolConns keeps many parallel tests below the server's limit.
const poolConns = 10

// cleanupTimeout bounds what a test leaves behind.
const cleanupTimeout = 30 * time.Second

// New returns a pool on a fresh database with the newest schema. The pool is closed and the database dropped when the test ends.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := postgres.Open(t.Context(), URL(t), func(c *pgxpool.Config) { c.MaxConns = poolConns })
	if err != nil {
		t.Fatalf("open test database: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// URL returns the connection URL of a fresh database with the newest schema, for tests that open their own connections or start a
// program. The database is dropped when the test ends, whoever is still connected.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, func(ctx context.Context, s *server) (string, error) { return s.template(ctx) })
}

// Empty is URL without the schema.
func Empty(t testing.TB) string {
	t.Helper()
	return create(t, func(context.Context, *server) (string, error) { return "template0", nil })
}

// Copy returns the connection URL of a copy of a test's database, as a backup is. Nobody may be connected to the original meanwhile.
func Copy(t testing.TB, of string) string {
	t.Helper()
	original, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	return create(t, func(context.Context, *server) (string, error) { return strings.TrimPrefix(original.Path, "/"), nil })
}

func create(t testing.TB, template func(context.Context, *server) (string, error)) string {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("test database server: %v", err)
	}
	from, err := template(t.Context(), s)
	if err != nil {
		t.Fatalf("test database template: %v", err)
	}
	name := "test_" + random()
	if err := s.clone(t.Context(), name, from); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	url, err := postgres.Database(s.url, name)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// closePool waits for connections that are in use, and says so when a test has leaked one instead of hanging for ever.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() { pool.Close(); close(closed) }()
	timeout := time.NewTimer(cleanupTimeout)
	defer timeout.Stop()
	select {
	case <-closed:
	case <-timeout.C:
		t.Errorf("%d database connections were not given back", pool.Stat().AcquiredConns())
	}
}

const shiftSQL = `UPDATE market_clock SET shift = shift + $1::interval`

// Shift moves market_now() of a test's database forward by d.
func Shift(t testing.TB, db postgres.DB, d time.Duration) {
	t.Helper()
	if _, err := db.Exec(t.Context(), shiftSQL, d); err != nil {
		t.Fatalf("shift market clock: %v", err)
	}
}

func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
