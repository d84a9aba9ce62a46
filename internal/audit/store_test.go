package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/audit"
	"market/internal/postgres/pgtest"
)

var store audit.Store

// service lists one, as far as the audit needs it.
func service(t *testing.T, db *pgxpool.Pool, slug string) uuid.UUID {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	_, err := db.Exec(t.Context(), `
INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses) VALUES ($1, $2, 'x', 'https://x.example', 'GET', '/', '200')`, id, slug)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func entry(of uuid.UUID, subject audit.Subject, reason string) audit.Entry {
	return audit.Entry{Actor: "admin", By: "admin token", Action: audit.Void, Subject: subject, Service: of, Reason: reason,
		Before: []byte(`{"state": "delisted"}`), After: []byte(`{"state": "listed"}`)}
}

func add(t *testing.T, db *pgxpool.Pool, e audit.Entry) audit.Entry {
	t.Helper()
	kept, err := store.Add(t.Context(), db, e)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func reasons(entries []audit.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Reason)
	}
	return all
}

func TestStore_List_TheNewestFirstInPages(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	weather, maps := service(t, db, "weather"), service(t, db, "maps")
	for i := range 5 {
		add(t, db, entry(weather, audit.Service("weather"), fmt.Sprint(i)))
		add(t, db, entry(maps, audit.Service("maps"), "of another"))
	}
	var all []string
	cursor, pages := "", 0
	for {
		entries, next, known, err := store.List(t.Context(), db, weather, 2, cursor)
		if err != nil || !known {
			t.Fatal(known, err)
		}
		all, pages = append(all, reasons(entries)...), pages+1
		if cursor = next; cursor == "" {
			break
		}
	}
	if want := []string{"4", "3", "2", "1", "0"}; !slices.Equal(all, want) || pages != 3 {
		t.Errorf("%d pages of %q, want 3 of %q", pages, all, want)
	}
	if entries, next, _, err := store.List(t.Context(), db, uuid.UUID{}, 10, ""); err != nil || len(entries) != 10 || next != "" {
		t.Errorf("of all services: %d entries, next %q, %v", len(entries), next, err)
	}
	for _, cursor := range []string{"x", "YTE6", "YTE6MA", "YTE6LTE", "cjE6MQ"} {
		if _, _, known, err := store.List(t.Context(), db, weather, 2, cursor); known || err != nil {
			t.Errorf("the cursor %q is taken for one of ours, %v", cursor, err)
		}
	}
}

func TestStore_Latest_OfEachSubject(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	of := service(t, db, "weather")
	one, two, none := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	add(t, db, entry(of, audit.Strike(one), "first"))
	add(t, db, entry(of, audit.Strike(two), "other"))
	want := add(t, db, entry(of, audit.Strike(one), "second"))
	latest, err := store.Latest(t.Context(), db, audit.KindStrike, []string{one.String(), two.String(), none.String()})
	if err != nil || len(latest) != 2 {
		t.Fatalf("latest = %v, %v; want two", latest, err)
	}
	got := latest[one.String()]
	if got.ID != want.ID || !got.At.Equal(want.At) || got.Reason != "second" || got.Slug != "weather" || got.Service != of || string(got.After) != `{"state": "listed"}` {
		t.Errorf("latest = %+v, want %+v", got, want)
	}
}

func TestStore_Add_RefusesAnEntryThatLeavesOutWhoWhatOrWhy(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, spoil := range map[string]func(e *audit.Entry){
		"no actor":   func(e *audit.Entry) { e.Actor = "" },
		"no author":  func(e *audit.Entry) { e.By = "" },
		"no action":  func(e *audit.Entry) { e.Action = "" },
		"no kind":    func(e *audit.Entry) { e.Subject.Kind = "" },
		"no subject": func(e *audit.Entry) { e.Subject.Name = "" },
		"no reason":  func(e *audit.Entry) { e.Reason = "" },
		"no before":  func(e *audit.Entry) { e.Before = nil },
		"no after":   func(e *audit.Entry) { e.After = nil },
	} {
		e := entry(uuid.UUID{}, audit.Service("weather"), "because")
		spoil(&e)
		if _, err := store.Add(t.Context(), db, e); err == nil {
			t.Errorf("%s: it is kept", name)
		}
	}
	if kept := add(t, db, entry(uuid.UUID{}, audit.Service("weather"), "about no service")); kept.ID == 0 || kept.At.IsZero() {
		t.Errorf("kept as %+v", kept)
	}
}

func TestAudit_IsOnlyAddedTo(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	add(t, db, entry(uuid.UUID{}, audit.Service("weather"), "because"))
	for _, sql := range []string{`UPDATE audit SET reason = 'nothing happened'`, `DELETE FROM audit`, `TRUNCATE audit CASCADE`} {
		_, err := db.Exec(t.Context(), sql)
		if no, ok := errors.AsType[*pgconn.PgError](err); !ok || no.ConstraintName != "audit_only_added" && no.ConstraintName != "appeals_kept" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
