package app_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"market/internal/app"
	"market/internal/app/apptest"
)

// postOnly is a service that answers nothing but POST, as JSON.
func postOnly(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(rw, "<b>POST only</b>", http.StatusMethodNotAllowed)
		return
	}
	if body, _ := io.ReadAll(r.Body); !strings.HasPrefix(string(body), "{") || r.Header.Get("Content-Type") != "application/json" {
		http.Error(rw, "not JSON", http.StatusBadRequest)
		return
	}
	apptest.Works(rw, r)
}

// B129, B135: whoever lists a service with a probe that it cannot pass learns so at once, its callers learn what was sent and what was expected,
// and neither costs anything. The right probe makes it live.
func TestProbe_AWrongOneIsToldAtOnceAndProvesNothing(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	service := httptest.NewServer(http.HandlerFunc(postOnly))
	t.Cleanup(service.Close)
	list := func(slug string, probe map[string]any) map[string]any {
		t.Helper()
		status, made := w.Admin(t, http.MethodPost, "/api/v1/services", draft(slug, map[string]any{"base_url": service.URL, "probe": probe,
			"endpoints": []any{map[string]any{"method": "POST", "path": "/work", "price_usd": "0.002"}}}))
		if status != http.StatusCreated {
			t.Fatalf("list %s: %d %v", slug, status, made)
		}
		return first(made["checks"])
	}
	payer := w.Payer(t, 10*apptest.PriceUnits)

	check := list("wrong", map[string]any{"path": "/healthz", "statuses": []string{"200-299", "401"}})
	for member, want := range map[string]any{
		"name": "probe", "passed": false, "request": "GET " + service.URL + "/healthz", "expected": "a status of 200-299,401",
		"received": `status 405, Content-Type "text/plain; charset=utf-8", body "<b>POST only</b>\n"`,
	} {
		if check[member] != want {
			t.Errorf("check: %s = %v, want %v", member, check[member], want)
		}
	}
	ask := apptest.Ask(w.URL + "/s/wrong/work")
	a := w.Pay(t, payer, w.Challenge(t, ask), ask)
	expect(t, "a service that fails its own probe", a, http.StatusServiceUnavailable, "not_live")
	detail := "the service's liveness probe GET /healthz was answered with status 405; its listing expects 200-299,401"
	if a.JSON["detail"] != detail || a.JSON["charged"] != false {
		t.Errorf("detail = %v, charged %v, want %s", a.JSON["detail"], a.JSON["charged"], detail)
	}
	if strikes := w.OpenStrikes(t, "wrong"); len(strikes) != 0 {
		t.Errorf("strikes = %+v, want none", strikes)
	}

	check = list("right", map[string]any{"method": "POST", "path": "/work", "body": map[string]any{"n": 0}, "statuses": []string{"200"}})
	if check["passed"] != true {
		t.Errorf("check = %v, want passed", check)
	}
	ask = apptest.Ask(w.URL + "/s/right/work")
	if a := w.Pay(t, payer, w.Challenge(t, ask), ask); a.Outcome() != "served" {
		t.Errorf("%d %s, want served", a.Status, a.Body)
	}
	for who, want := range map[string]any{"the owner": map[string]any{"n": 0.0}, "a stranger": nil} {
		seen := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/right"}, "").JSON
		if who == "the owner" {
			_, seen = w.Admin(t, http.MethodGet, "/api/v1/services/right", nil)
		}
		probe, _ := seen["probe"].(map[string]any)
		if body, shown := probe["body"].(map[string]any); shown != (want != nil) || (shown && body["n"] != 0.0) || seen["checks"] != nil {
			t.Errorf("%s sees the probe %v and the checks %v", who, probe, seen["checks"])
		}
	}
}

// A names is a resolver whose answer changes. Every name leads to this machine, or nowhere.
type names struct{ err atomic.Pointer[net.DNSError] }

func (n *names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if err := n.err.Load(); err != nil {
		return nil, err
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// B138: a look-up that fails here is the platform's failure, refunded and no strike; a name that does not exist is the service's.
func TestPaidPath_AResolverThatFailsIsNoStrike(t *testing.T) {
	t.Parallel()
	resolver := &names{}
	w := apptest.StartWith(t, apptest.Setup{Options: []app.Option{app.WithResolver(resolver)}}, "MARKET_PROBE_TTL=10m")
	service := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "close") // so that every call has to look the name up
		apptest.Works(rw, r)
	}))
	t.Cleanup(service.Close)
	base := strings.Replace(service.URL, "127.0.0.1", "weather.example", 1)
	for _, slug := range []string{"known", "fresh"} {
		if status, made := w.Admin(t, http.MethodPost, "/api/v1/services", draft(slug, map[string]any{"base_url": base})); status != http.StatusCreated {
			t.Fatalf("list: %d %v", status, made)
		}
	}
	payer := w.Payer(t, 10*apptest.PriceUnits)
	pay := func(slug string) apptest.Answer {
		ask := apptest.Asking{Method: http.MethodGet, URL: w.URL + "/s/" + slug + "/"}
		return w.Pay(t, payer, w.Challenge(t, ask), ask)
	}
	if a := pay("known"); a.Outcome() != "served" {
		t.Fatalf("%d %s, want served", a.Status, a.Body)
	}

	resolver.err.Store(&net.DNSError{Err: "server misbehaving", IsTemporary: true})
	a := pay("known")
	expect(t, "the resolver fails", a, http.StatusBadGateway, "egress_down")
	if a.JSON["party"] != "platform" || a.Refund("state") == "" {
		t.Errorf("party = %v, refund %q, want the platform's, refunded", a.JSON["party"], a.Refund("state"))
	}
	if strikes, rest := w.OpenStrikes(t, "known"), w.Rest(t, "known"); len(strikes) != 0 || rest > 0 {
		t.Errorf("strikes = %+v, rest %v, want none", strikes, rest)
	}
	a = pay("fresh")
	expect(t, "the resolver fails at the probe", a, http.StatusServiceUnavailable, "not_ready")
	if a.JSON["charged"] != false {
		t.Errorf("charged = %v", a.JSON["charged"])
	}

	resolver.err.Store(&net.DNSError{Err: "no such host", IsNotFound: true})
	expect(t, "the name does not exist", pay("known"), http.StatusBadGateway, "upstream_unreachable")
	if strikes := w.OpenStrikes(t, "known"); len(strikes) != 1 {
		t.Errorf("strikes = %+v, want one", strikes)
	}

	resolver.err.Store(nil)
	apptest.Eventually(t, "the service that could not be looked up is served, though a verdict on it would count for 10 minutes", func() bool {
		ask := apptest.Asking{Method: http.MethodGet, URL: w.URL + "/s/fresh/"}
		return w.Send(t, ask, "").Status == http.StatusPaymentRequired
	})
	if a := pay("fresh"); a.Outcome() != "served" {
		t.Errorf("%d %s, want served", a.Status, a.Body)
	}
}
