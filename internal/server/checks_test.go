package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/upstream"
)

// A lookOut is an Upstream that says the same about every host, or of one address alone.
type lookOut struct {
	says  error
	of    string // empty: of every one
	asked []string
}

func (l *lookOut) Vet(_ context.Context, baseURL string) error {
	l.asked = append(l.asked, baseURL)
	if l.of != "" && l.of != baseURL {
		return nil
	}
	return l.says
}

func (l *lookOut) Check(context.Context, *catalog.Service) upstream.Finding {
	return upstream.Finding{}
}

// post sends a listing to a server without a database: what is refused here is refused before anything is written.
func post(t *testing.T, l *lookOut, body string) (*httptest.ResponseRecorder, problem) {
	t.Helper()
	s := newTestServer()
	s.upstream, s.rules, s.now = l, draftRules, time.Now
	r := httptest.NewRequest(http.MethodPost, "/api/v1/services", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer a-token-of-the-tests")
	answer := httptest.NewRecorder()
	s.Public().Handler.ServeHTTP(answer, r)
	var p problem
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil {
		t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
	return answer, p
}

const listing = `{"slug":"weather","name":"Weather","base_url":"https://api.weather.example/v1","probe":{"path":"/healthz","statuses":["200"]},
	"endpoints":[{"method":"GET","path":"/","price_usd":"0.002"}]}`

func TestCreateService_ABadHostIsAProblemOfItsField(t *testing.T) {
	t.Parallel()
	l := &lookOut{says: &upstream.HostError{Problem: "leads to 10.0.0.1, which is not a public address"}}
	answer, p := post(t, l, listing)
	if answer.Code != http.StatusUnprocessableEntity || p.Code != call.InvalidRequest || len(p.Fields) != 1 || p.Fields[0].Name != "/base_url" ||
		p.Fields[0].Message != "leads to 10.0.0.1, which is not a public address" {
		t.Errorf("%d %s, want 422 about /base_url", answer.Code, answer.Body)
	}
	if len(l.asked) != 1 || l.asked[0] != "https://api.weather.example/v1" {
		t.Errorf("looked up %q, want the base URL", l.asked)
	}
}

// B138: when we cannot look, that is not the host's fault, and it can be tried again.
func TestCreateService_ALookUpThatFailedIsOurTrouble(t *testing.T) {
	t.Parallel()
	answer, p := post(t, &lookOut{says: errors.New("server misbehaving on 10.9.8.7:53")}, listing)
	if answer.Code != http.StatusServiceUnavailable || p.Code != call.NotReady || len(p.Fields) != 0 || answer.Header().Get("Retry-After") != "5" {
		t.Errorf("%d %s, Retry-After %q, want 503 about no field", answer.Code, answer.Body, answer.Header().Get("Retry-After"))
	}
	if strings.Contains(answer.Body.String(), "10.9.8.7") {
		t.Errorf("the answer names our resolver: %s", answer.Body)
	}
}

func TestCreateService_NothingIsLookedUpForAListingThatIsWrong(t *testing.T) {
	t.Parallel()
	l := &lookOut{}
	answer, _ := post(t, l, strings.Replace(listing, "https:", "http:", 1))
	if answer.Code != http.StatusUnprocessableEntity || len(l.asked) != 0 {
		t.Errorf("%d after a look at %q, want 422 and none", answer.Code, l.asked)
	}
}
