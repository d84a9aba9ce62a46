package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"market/internal/app/apptest"
)

// What a service did with its calls stands beside its listing, in the list and alone, and the list can be had in that order.
func TestServices_HaveARecordAndAnOrderByIt(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	bad, good := w.List(t, "bad", apptest.Fails, nil), w.List(t, "good", apptest.Works, nil)
	w.List(t, "fresh", apptest.Works, map[string]any{"price_usd": "0.5"})
	payer := w.Payer(t, 10*apptest.PriceUnits)
	for _, s := range []*apptest.Service{bad, good, good} {
		w.Pay(t, payer, w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL))
	}
	get := func(path string) map[string]any {
		return w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + path}, "").JSON
	}
	for query, want := range map[string][]string{
		"":                               {"bad", "good", "fresh"},
		"?sort=record":                   {"good", "bad", "fresh"},
		"?sort=record&max_price_usd=0.1": {"good", "bad"},
		"?query=fresh":                   {"fresh"},
		"?network=base-sepolia":          {"bad", "good", "fresh"},
		"?network=eip155:84532&query=o":  {"bad", "fresh", "good"}, // of the endpoint's path, /work, and in a name
		"?status=delisted":               nil,
	} {
		list := get("/api/v1/services" + query)
		var got []string
		items, _ := list["items"].([]any)
		for _, item := range items {
			got = append(got, item.(map[string]any)["slug"].(string)) //nolint:forcetypeassert // of our own API
		}
		if query == "?network=eip155:84532&query=o" {
			slices.Sort(got)
		}
		if !slices.Equal(got, want) || list["total"] != float64(len(want)) {
			t.Errorf("%q: %v of %v, want %v", query, got, list["total"], want)
		}
	}
	if a := get("/api/v1/services?network=eip155:8453"); a["code"] != "invalid_parameter" || a["fields"].([]any)[0].(map[string]any)["name"] != "network" { //nolint:forcetypeassert // of our own API
		t.Errorf("a network that nothing is paid on: %v", a)
	}
	window := func(service map[string]any, name string) map[string]any {
		record, _ := service["record"].(map[string]any)
		of, _ := record[name].(map[string]any)
		return of
	}
	alone := get("/api/v1/services/good")
	for _, name := range []string{"24h", "7d", "30d"} {
		if of := window(alone, name); of["n"] != 2.0 || of["delivered"] != 1.0 || of["served"] != 2.0 || of["failed"] != 0.0 || of["p50_ms"] == nil {
			t.Errorf("the record of %s: %v", name, of)
		}
	}
	inList, _ := get("/api/v1/services?query=bad")["items"].([]any)[0].(map[string]any)
	if of := window(inList, "7d"); of["n"] != 1.0 || of["delivered"] != 0.0 || of["failed"] != 1.0 || of["p50_ms"] != nil || window(inList, "24h") != nil {
		t.Errorf("the record in the list: %v", inList["record"])
	}
	page := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/", Header: http.Header{"Accept": {"text/html"}}}, "")
	if at := strings.Index(string(page.Body), "/services/good"); at < 0 || at > strings.Index(string(page.Body), "/services/bad") {
		t.Errorf("the page does not show first what delivers best:\n%s", page.Body)
	}
}

// A transaction is public: whoever knows it learns where the money is, and neither what was called nor the id that would tell.
func TestCalls_ATransactionTellsOfTheMoneyAlone(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "secretive", apptest.Fails, nil)
	payer := w.Payer(t, apptest.PriceUnits)
	a := w.Pay(t, payer, w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL))
	paid, _ := a.JSON["payment"].(map[string]any)
	transaction, _ := paid["transaction"].(string)
	for _, accept := range []string{"application/json", "text/html"} {
		for _, path := range []string{"/api/v1/calls?q=", "/calls?q="} {
			found := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + path + transaction, Header: http.Header{"Accept": {accept}}}, "")
			text := string(found.Body)
			if found.Status != http.StatusOK || !strings.Contains(text, transaction) || !strings.Contains(text, payer.Address().Hex()) || !strings.Contains(text, "efund") {
				t.Errorf("%s as %s: %d %s", path, accept, found.Status, text)
			}
			for _, secret := range []string{"secretive", "/work", a.Call(), "upstream_5xx"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s as %s tells %s:\n%s", path, accept, secret, text)
				}
			}
		}
	}
	byID := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/calls?q=" + a.Call()}, "")
	if byID.JSON["id"] != a.Call() || byID.JSON["service"] != "secretive" {
		t.Errorf("by its id: %d %s", byID.Status, byID.Body)
	}
}
