package app_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"market/internal/app/apptest"
)

// A program goes from a wallet's key to a sold call with nothing but the public API: it signs in, makes a key that may list, lists with that, and somebody buys.
func TestProvider_AScriptGoesFromSignInToASoldCall(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	upstream := httptest.NewServer(http.HandlerFunc(apptest.Works))
	t.Cleanup(upstream.Close)
	payer := w.Payer(t, apptest.PriceUnits)
	_, wallet := apptest.NewKey(t)
	began := time.Now()

	s := w.SignIn(t, wallet)
	key := s.Want(t, http.StatusCreated, http.MethodPost, "/api/v1/provider/keys", map[string]any{"name": "script", "scopes": []string{"services:write", "services:read"}})
	s.Want(t, http.StatusNoContent, http.MethodDelete, "/api/v1/auth/session", nil)
	if status := s.Ask(t, http.MethodGet, "/api/v1/provider", nil).Status; status != http.StatusUnauthorized {
		t.Errorf("a session that was ended answers %d, want 401", status)
	}
	s.Token, _ = key["token"].(string)
	made := s.Want(t, http.StatusCreated, http.MethodPost, "/api/v1/services", map[string]any{"slug": "weather", "name": "Weather", "base_url": upstream.URL,
		"probe":     map[string]any{"path": "/healthz", "statuses": []string{"200"}},
		"endpoints": []any{map[string]any{"method": "POST", "path": "/work", "price_usd": "0.002"}}})
	if made["state"] != "listed" {
		t.Fatalf("the service is %v", made["state"])
	}
	ask := apptest.Asking{Method: http.MethodPost, URL: w.URL + "/s/weather/work", Body: `{"n":1}`}
	answer := w.Pay(t, payer, w.Challenge(t, ask), ask)
	if answer.Status != http.StatusOK || answer.Outcome() != "served" {
		t.Fatalf("the call: %d %s %s", answer.Status, answer.Outcome(), answer.Body)
	}
	t.Logf("from sign-in to a sold call: %s", time.Since(began).Round(time.Millisecond))

	list := s.Want(t, http.StatusOK, http.MethodGet, "/api/v1/provider/services", nil)
	if items, _ := list["items"].([]any); len(items) != 1 {
		t.Errorf("the services of the account: %v", list)
	}
	if status := s.Ask(t, http.MethodGet, "/api/v1/provider/keys", nil).Status; status != http.StatusForbidden {
		t.Errorf("a key that lists keys: %d, want 403", status)
	}
}
