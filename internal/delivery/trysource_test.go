package delivery

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
	sources "market/internal/source"
)

// hostedOut is a facilitator that has stopped us, with a window that lasts; and what is due once somebody says that it is topped up.
func hostedOut(t *testing.T, db *pgxpool.Pool) (r *sources.Registry, resumed *[]string) {
	t.Helper()
	const outSQL = `
INSERT INTO source_state (source, exhausted_at, retry_at, why, said, out_since, refused_at)
VALUES ('facilitator/hosted', market_now(), market_now() + interval '1 hour', 'exhausted', 'HTTP 402', market_now(), market_now())`
	if _, err := db.Exec(t.Context(), outSQL); err != nil {
		t.Fatal(err)
	}
	resumed = new([]string)
	return sources.New(db, time.Now, []sources.Source{
		{Name: "facilitator/hosted", Kind: sources.KindFacilitator, RunsOut: sources.Prepaid}, {Name: "mail", Kind: sources.KindMail, RunsOut: sources.Rate},
	}, sources.Hooks{Resume: func(_ context.Context, _ pgx.Tx, s sources.Source) error {
		*resumed = append(*resumed, s.Name)
		return nil
	}}), resumed
}

// retryIn is how long the facilitator is left alone still, and how often somebody had it tried.
func retryIn(t *testing.T, db *pgxpool.Pool) (window time.Duration, tried int) {
	t.Helper()
	const readSQL = `
SELECT greatest(retry_at - market_now(), '0'), (SELECT count(*) FROM audit WHERE action = 'source_tried') FROM source_state WHERE source = 'facilitator/hosted'`
	if err := db.QueryRow(t.Context(), readSQL).Scan(&window, &tried); err != nil {
		t.Fatal(err)
	}
	return window, tried
}

func TestTrySource_EndsTheWindowAndKeepsWhoSaidSo(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	registry, resumed := hostedOut(t, db)
	for range 2 { // doing it twice does no more
		done, err := TrySource(t.Context(), db, registry, "facilitator/hosted", catalog.AdminToken, "invoice 4711")
		if err != nil || done.Standing.RetryAt.After(done.Standing.At) || done.Entry.Subject != audit.Source("facilitator/hosted") || done.Entry.By != "admin token" ||
			done.Entry.Reason != "invoice 4711" || string(done.Entry.Before) == string(done.Entry.After) {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	if window, tried := retryIn(t, db); window != 0 || tried != 2 || strings.Join(*resumed, " ") != "facilitator/hosted facilitator/hosted" {
		t.Errorf("it is left alone for %s after %d tries; due is %q", window, tried, *resumed)
	}
}

func TestTrySource_OfWhatRefusesNothingIsAConflict(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	registry, resumed := hostedOut(t, db)
	for name, want := range map[string]call.Reason{"mail": call.Conflict, "facilitator/nobody": call.NotFound, "": call.NotFound} {
		_, err := TrySource(t.Context(), db, registry, name, catalog.AdminToken, "why")
		if no, ok := errors.AsType[*refusal.Error](err); !ok || no.Reason != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if window, tried := retryIn(t, db); window == 0 || tried != 0 || len(*resumed) != 0 {
		t.Errorf("it is left alone for %s after %d tries; due is %q", window, tried, *resumed)
	}
}

func TestTrySource_AdvisesToRaiseAGuardOnlyWhereSomebodyCan(t *testing.T) {
	t.Parallel()
	for kind, want := range map[sources.Kind]bool{sources.KindFacilitator: true, sources.KindRPC: true, sources.KindMail: false, sources.KindWebhook: false} {
		said := guardedToo(sources.Standing{Source: sources.Source{Kind: kind}, GuardedAt: time.Now()})
		if got := strings.Contains(said, "guard.floor"); got != want || !strings.Contains(said, "00:00 UTC") {
			t.Errorf("%s: %q", kind, said)
		}
	}
}

// Nobody opens a window without a word of who did: what is not kept does not happen.
func TestTrySource_WhatCannotBeKeptDoesNotHappen(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	registry, _ := hostedOut(t, db)
	if _, err := TrySource(t.Context(), db, registry, "facilitator/hosted", catalog.AdminToken, ""); err == nil {
		t.Error("it was tried for no reason")
	}
	if window, tried := retryIn(t, db); window == 0 || tried != 0 {
		t.Errorf("it is left alone for %s after %d tries", window, tried)
	}
}
