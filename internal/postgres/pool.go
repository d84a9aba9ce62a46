package postgres

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The oldest server that the schema and the statements are tested against.
const majorMin = 14

// Limits of a pool. A connection URL may set its own with the usual parameters (pool_max_conns, statement_timeout, …).
const (
	connsMax       = 20
	connectTimeout = 5 * time.Second
	connLifetime   = time.Hour
)

// sessionSettings hold for every connection. They are sent at connect, so the server must be reached directly or through a pooler that
// keeps sessions; LISTEN and advisory locks ask for that anyway. No statement of ours is meant to take seconds: the timeouts keep a
// stuck one from holding its locks for ever. Compiling a statement takes seconds where running it takes less than one millisecond, and the server would
// do it for each that is to go one way however dear the planner takes that for (see the records of package delivery).
func sessionSettings() map[string]string {
	return map[string]string{
		"application_name":                    "market",
		"timezone":                            "UTC",
		"statement_timeout":                   "30s",
		"lock_timeout":                        "10s",
		"idle_in_transaction_session_timeout": "60s",
		"jit":                                 "off",
	}
}

// Open returns a pool on the database at a postgres:// URL. It connects once, so a wrong address, a wrong password and a server that is
// too old are errors here. Each tune may change the pool's settings before that.
func Open(ctx context.Context, databaseURL string, tune ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	config, err := poolConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	for _, t := range tune {
		t(config)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open database pool: %w", err)
	}
	if err := checkServer(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func poolConfig(databaseURL string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		// The parser's own text quotes parts of the URL, which holds a password.
		return nil, fmt.Errorf("database URL: not a postgres:// URL with valid parameters")
	}
	if !strings.Contains(databaseURL, "pool_max_conns") {
		config.MaxConns = connsMax
	}
	config.MaxConnLifetime = connLifetime
	config.MaxConnLifetimeJitter = connLifetime / 10
	applySession(config.ConnConfig)
	return config, nil
}

// applySession fills in what the URL left open.
func applySession(config *pgx.ConnConfig) {
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	for name, value := range sessionSettings() {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
	// Times are compared and shown in UTC; a URL may not choose otherwise, in whatever case it spells the parameter.
	for name := range config.RuntimeParams {
		if strings.EqualFold(name, "timezone") {
			delete(config.RuntimeParams, name)
		}
	}
	config.RuntimeParams["timezone"] = "UTC"
}

func checkServer(ctx context.Context, db DB) error {
	var text string
	if err := db.QueryRow(ctx, `SELECT current_setting('server_version_num')`).Scan(&text); err != nil {
		return fmt.Errorf("reach database: %w", err)
	}
	return checkVersion(text)
}

// checkVersion reads server_version_num: major * 10 000 + minor since Postgres 10.
func checkVersion(text string) error {
	version, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("database version: %w", err)
	}
	if major := version / 10_000; major < majorMin {
		return fmt.Errorf("database server is Postgres %d; at least %d is needed", major, majorMin)
	}
	return nil
}

// Database returns the URL of another database on the same server.
func Database(serverURL, name string) (string, error) {
	u, err := url.Parse(serverURL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return "", fmt.Errorf("database URL: not a postgres:// URL")
	}
	u.Path = "/" + name
	return u.String(), nil
}
