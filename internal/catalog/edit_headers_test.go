package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"market/internal/catalog"
	"market/internal/config"
	"market/internal/postgres/pgtest"
	"market/internal/secretbox"
)

// Headers are edited with the rest, and nothing keeps or shows their values: the history has names and moments.
func TestStore_EditService_ChangesHeadersAndKeepsNoSecret(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s, secrets := create(t, db, draft(t, "weather", "/")), catalog.NewSecrets(secretbox.RandomBox())
	edit := func(text string) (catalog.Edited, error) {
		e := patch(text)
		e.Secrets = secrets
		return editService(t, db, "weather", e)
	}
	names := func() (out []string) {
		for _, h := range find(t, db, "weather").Headers {
			out = append(out, h.Name)
		}
		return out
	}
	for _, step := range []struct {
		patch string
		want  []string
	}{
		{`{"headers":{"X-Api-Key":"hunter2","X-Plan":"gold"},"name":"Rain"}`, []string{"X-Api-Key", "X-Plan"}},
		{`{"headers":{"X-Plan":null}}`, []string{"X-Api-Key"}},
		{`{"headers":{"X-Api-Key":"hunter3"}}`, []string{"X-Api-Key"}},
		{`{"description":"By city"}`, []string{"X-Api-Key"}},
		{`{"base_url":"https://api.weather.example/v2"}`, []string{"X-Api-Key"}}, // the same host
		{`{"base_url":"https://rain.example","headers":{"X-Api-Key":"hunter4"}}`, []string{"X-Api-Key"}},
		{`{"headers":null}`, nil},
		{`{"base_url":"https://api.weather.example"}`, nil},
	} {
		if out, err := edit(step.patch); err != nil || !out.Changed || !slices.Equal(names(), step.want) {
			t.Errorf("%s: changed = %v, %v, headers %q; want %q", step.patch, out.Changed, err, names(), step.want)
		}
	}
	if out, err := edit(`{"headers":null}`); err != nil || out.Changed {
		t.Errorf("none to remove: changed = %v, %v", out.Changed, err)
	}
	if out, err := edit(`{"headers":{"X-Api-Key":"hunter5"}}`); err != nil || !out.Changed {
		t.Fatal(err)
	}
	for _, same := range []string{`{"headers":{"X-Api-Key":"hunter5"}}`, `{"headers":{"x-api-key":"hunter5","X-None":null}}`} {
		pgtest.Shift(t, db, time.Minute)
		if out, err := edit(same); err != nil || out.Changed {
			t.Errorf("%s again: changed = %v, %v", same, out.Changed, err)
		}
	}
	e := catalog.Edit{By: owner, Secrets: secrets}
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { // all that there will be
		out, err := store.EditHeaders(t.Context(), tx, "weather", catalog.HeaderChange{Replace: true, Set: map[string]config.Secret{"X-Api-Key": config.NewSecret("hunter5")}}, e)
		if out.Changed {
			t.Error("the same headers again are a change")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		`{"base_url":"https://rain.example"}`:                                    {"/headers"},
		`{"base_url":"https://rain.example:8443","headers":{"X-Plan":"gold"}}`:   {"/headers"},
		`{"headers":{"Market-Call":"x"},"name":""}`:                              {"/headers/Market-Call", "/name"},
		`{"base_url":"https://rain.example","headers":{"X-Api-Key":"hunter\n"}}`: {"/headers", "/headers/X-Api-Key"},
	} {
		if _, err := edit(text); !slices.Equal(fieldsOf(err), want) || strings.Contains(fmt.Sprint(err), "hunter") {
			t.Errorf("%s: %v complains about %q, want %q", text, err, fieldsOf(err), want)
		}
	}
	var kept string
	if err := db.QueryRow(t.Context(), `SELECT string_agg(before::text || after::text, '') FROM service_revisions`).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(kept, "hunter") || strings.Contains(kept, "gold") || !strings.Contains(kept, "X-Api-Key") {
		t.Errorf("the history holds %s", kept)
	}
	if got := len(revisions(t, db, s)); got != 9 {
		t.Errorf("%d revisions, want one an edit that changed something", got)
	}
}

func TestStore_EditEndpoint_LeavesAStreamAStreamUntilItIsNone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	d := draft(t, "feed", "/")
	streamed, err := catalog.ParseEndpointDraft([]byte(`{"method":"GET","path":"/v1/feed","price_usd":"0.002","stream":true,"timeout_ms":600000,"idle_timeout_ms":5000}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	d.Endpoints = []catalog.EndpointDraft{streamed}
	before := create(t, db, d).Endpoints[0]
	out, err := editEndpoint(t, db, "feed", before.ID, patch(`{"description":"Feed"}`), catalog.Rules{})
	if e := out.Endpoint; err != nil || !e.Stream || e.Timeout != before.Timeout || e.IdleTimeout != before.IdleTimeout || e.MIMEType != before.MIMEType || e.MaxResponseBytes != before.MaxResponseBytes {
		t.Fatalf("%+v, %v; it was %+v", out.Endpoint, err, before)
	}
	out, err = editEndpoint(t, db, "feed", before.ID, patch(`{"stream":null,"idle_timeout_ms":null,"mime_type":null,"timeout_ms":null,"max_response_bytes":null}`), catalog.Rules{})
	if e := out.Endpoint; err != nil || e.Stream || e.MIMEType != "application/json" || e.Timeout.Seconds() != 10 {
		t.Errorf("no stream any more: %+v, %v", out.Endpoint, err)
	}
}
