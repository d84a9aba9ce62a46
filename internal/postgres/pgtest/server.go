package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/postgres"
)

// Variable names the maintenance database of a server that tests may use.
const Variable = "MARKET_TEST_DATABASE_URL"

// A server is where this process makes its databases.
type server struct {
	url         string
	maintenance *pgxpool.Pool
	migrated    func() (string, error)
}

// shared is the process's server, reached or started when the first test asks. It lasts as long as the process; the kernel, or the
// janitor of an embedded one, cleans up after it.
var shared = sync.OnceValues(func() (*server, error) {
	ctx := context.Background()
	url := os.Getenv(Variable)
	if url == "" {
		embedded, err := StartTemporary(ctx)
		if errors.Is(err, postgres.ErrNoBinaries) {
			return nil, fmt.Errorf("%w (or set %s to a server for tests)", err, Variable)
		}
		if err != nil {
			return nil, err
		}
		url = embedded.URL()
	}
	maintenance, err := postgres.Open(ctx, url, func(c *pgxpool.Config) {
		c.MaxConns = 4
		// Copying a template may wait for others who copy it.
		c.ConnConfig.RuntimeParams["lock_timeout"] = "0"
		c.ConnConfig.RuntimeParams["statement_timeout"] = "120s"
	})
	if err != nil {
		return nil, err
	}
	s := &server{url: url, maintenance: maintenance}
	s.migrated = sync.OnceValues(s.migrateTemplate)
	return s, nil
})

// templateLock is the advisory lock, on the maintenance database, of the process that makes a template.
const templateLock int64 = 0x6d6b745f74706c // "mkt_tpl"

// template returns the name of the database to clone, made by the first process that needs it.
func (s *server) template(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return s.migrated()
}

const (
	lockSQL   = `SELECT pg_advisory_lock($1)`
	unlockSQL = `SELECT pg_advisory_unlock($1)`
	existsSQL = `SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)`
)

// migrateTemplate makes the template under another name and renames it when it is whole: one that carries the final name is complete,
// even if its maker was killed half way.
func (s *server) migrateTemplate() (string, error) {
	ctx := context.Background()
	fingerprint, err := postgres.SchemaFingerprint()
	if err != nil {
		return "", err
	}
	name, building := "template_"+fingerprint, "building_"+fingerprint
	conn, err := s.maintenance.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, lockSQL, templateLock); err != nil {
		return "", err
	}
	defer func() { _, _ = conn.Exec(ctx, unlockSQL, templateLock) }()

	var there bool
	if err := conn.QueryRow(ctx, existsSQL, name).Scan(&there); err != nil || there {
		return name, err
	}
	if err := s.drop(ctx, building); err != nil {
		return "", err
	}
	if err := s.clone(ctx, building, "template0"); err != nil {
		return "", err
	}
	url, err := postgres.Database(s.url, building)
	if err != nil {
		return "", err
	}
	if err := postgres.Migrate(ctx, url); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+quote(building)+" RENAME TO "+quote(name))
	return name, err
}

// clone creates a database as a copy of another. Names come from this package alone.
func (s *server) clone(ctx context.Context, name, from string) error {
	_, err := s.maintenance.Exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(from))
	return err
}

// drop removes a database, whoever is connected to it.
func (s *server) drop(ctx context.Context, name string) error {
	_, err := s.maintenance.Exec(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)")
	return err
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
