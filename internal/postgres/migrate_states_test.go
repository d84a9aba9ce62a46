package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
	"market/migrations"
)

// B134: a deployment that brings reasons gives what is there already its own: nothing vanishes by a migration.
func TestMigrate_ServicesThatWereThereHaveTheirEvents(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	provider, err := goose.NewProvider(goose.DialectPostgres, stdlib.OpenDBFromPool(db), migrations.FS,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 13); err != nil {
		t.Fatal(err)
	}
	const before = `
INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses, state, state_reason, state_since, created_at)
VALUES (gen_random_uuid(), $1, 'x', 'https://x.example', 'GET', '/', '200', $2, $3, '2026-02-02', '2026-01-01')`
	for _, s := range [][3]string{{"a", "listed", "created"}, {"b", "delisted", "3 strikes within 24h0m0s"}, {"c", "retired", ""}} {
		if _, err := db.Exec(t.Context(), before, s[0], s[1], s[2]); err != nil {
			t.Fatal(err)
		}
	}
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(t.Context(), `
SELECT s.slug, e.from_state, e.cause, e.to_state, e.actor, e.detail, e.at::date::text, s.base_url_since::date::text
  FROM service_events e JOIN services s ON s.id = e.service_id ORDER BY s.slug, e.id`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(values))
	}
	want := []string{
		"[a  created listed admin created 2026-01-01 2026-01-01]",
		"[b  created listed admin created 2026-01-01 2026-01-01]", "[b listed strikes delisted recorder 3 strikes within 24h0m0s 2026-02-02 2026-01-01]",
		"[c  created listed admin created 2026-01-01 2026-01-01]", "[c listed withdrawn retired admin no reason was kept 2026-02-02 2026-01-01]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("events:\n%q\nwant\n%q", got, want)
	}
}
