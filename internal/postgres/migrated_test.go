package postgres_test

import (
	"testing"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

func TestMigrated_OnlyADatabaseWithEveryMigrationIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url    func(testing.TB) string
		change string
		want   bool
	}{
		"empty":                          {url: pgtest.Empty},
		"newest":                         {url: pgtest.URL, want: true},
		"without one between others":     {url: pgtest.URL, change: `DELETE FROM goose_db_version WHERE version_id = 7`},
		"without the newest":             {url: pgtest.URL, change: `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`},
		"without the newest of the jobs": {url: pgtest.URL, change: `DELETE FROM river_migration WHERE version = (SELECT max(version) FROM river_migration)`},
		"newer than the program":         {url: pgtest.URL, change: `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := postgres.Open(t.Context(), c.url(t))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if c.change != "" {
				if _, err := db.Exec(t.Context(), c.change); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := postgres.Migrated(t.Context(), db); err != nil || got != c.want {
				t.Errorf("migrated = %t, %v; want %t", got, err, c.want)
			}
		})
	}
}
