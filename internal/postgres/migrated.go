package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"market/migrations"
)

// Both are counted by their names, so that one left out between others is missed.
const migratedSQL = `
SELECT (SELECT count(DISTINCT version_id) FROM goose_db_version WHERE is_applied AND version_id = ANY($1)) = cardinality($1::bigint[])
	AND (SELECT count(DISTINCT version) FROM river_migration WHERE version = ANY($2)) = cardinality($2::bigint[])`

// undefinedTable is the SQLSTATE of a database that was never migrated.
const undefinedTable = "42P01"

// Migrated says whether a database has every migration that Migrate would make. A replica that starts beside others then needs neither the lock nor the
// connections of it: only the first one after an upgrade has something to do.
func Migrated(ctx context.Context, db DB) (bool, error) {
	ours, err := ourVersions()
	if err != nil {
		return false, err
	}
	queue, err := queueVersions()
	if err != nil {
		return false, err
	}
	var all bool
	err = db.QueryRow(ctx, migratedSQL, ours, queue).Scan(&all)
	if refused, is := errors.AsType[*pgconn.PgError](err); is && refused.Code == undefinedTable {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read schema version: %w", err)
	}
	return all, nil
}

func ourVersions() ([]int64, error) {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return nil, err
	}
	versions := make([]int64, len(names))
	for i, name := range names {
		if versions[i], err = goose.NumericComponent(name); err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
	}
	return versions, nil
}

func queueVersions() ([]int64, error) {
	all, err := queueMigrations()
	if err != nil {
		return nil, err
	}
	versions := make([]int64, len(all))
	for i, m := range all {
		versions[i] = int64(m.Version)
	}
	return versions, nil
}
