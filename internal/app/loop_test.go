package app_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"

	"market/internal/app/apptest"
)

func TestLoop_AServiceIsNotAtTheMarketItself(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	for _, path := range []string{"/try/other", ""} {
		status, answer := w.Admin(t, http.MethodPost, "/api/v1/services", draft("mirror", map[string]any{"base_url": w.URL + path}))
		if fields := fieldsOf(answer); status != http.StatusUnprocessableEntity || !slices.Equal(fields, []string{"/base_url"}) {
			t.Errorf("a base URL of our own is listed: %d %v", status, answer)
		}
	}
}

// A host of the provider's own can pass our requests back to us. Neither a call nor a probe gets anything there: one free request would feed
// itself, and a listing would sell the trial calls of others.
func TestLoop_WhatComesBackToUsIsRefused(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	victim := w.List(t, "victim", apptest.Works, map[string]any{"trial_calls_per_day": 5})
	door, err := url.Parse(w.URL)
	if err != nil {
		t.Fatal(err)
	}
	host := httptest.NewServer(httputil.NewSingleHostReverseProxy(door))
	t.Cleanup(host.Close)
	for _, slug := range []string{"itself", "reseller"} {
		target := map[string]string{"itself": "itself", "reseller": "victim"}[slug]
		w.ListWith(t, slug, apptest.Works, map[string]any{"trial_calls_per_day": 5}, map[string]any{
			"base_url": host.URL + "/try/" + target, "probe": map[string]any{"method": "POST", "path": "/work", "statuses": []string{"422"}},
		})
		a := w.Send(t, apptest.Ask(w.URL+"/s/"+slug+"/work").Trial(), "")
		expect(t, slug, a, http.StatusUnprocessableEntity, "rejected_by_service")
	}
	var taken int
	if err := w.DB.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE trial AND asked`).Scan(&taken); err != nil || taken != 2 {
		t.Errorf("%d trial calls were taken by two requests (%v)", taken, err)
	}
	if victim.Asked() != 0 {
		t.Errorf("the other provider's service was asked %d times", victim.Asked())
	}
}
