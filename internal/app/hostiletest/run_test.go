package hostiletest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/payment"
)

// A played row is what came of one.
type played struct {
	row
	title  string // of its group
	number int
	slug   string
	host   *host
	payer  chain.Key
	calls  []got
}

// numbered returns all rows, each to be played by a service of its own.
func numbered() []*played {
	var all []*played
	for _, g := range table() {
		for _, r := range g.rows {
			all = append(all, &played{row: r, title: g.title, number: len(all) + 1})
		}
	}
	return all
}

// list puts the row's service on the shelf.
func (p *played) list(t testing.TB, w *apptest.World) {
	t.Helper()
	p.slug = fmt.Sprintf("hostile-%d", p.number)
	p.host = open(t, p.plan)
	endpoint := map[string]any{
		"method": "POST", "path": "/work", "price_usd": "0.002", "description": "Work", "timeout_ms": 30_000}
	if p.get {
		endpoint["method"] = "GET"
	}
	maps.Copy(endpoint, p.listing)
	listing := map[string]any{
		"slug": p.slug, "name": p.name[:min(len(p.name), 80)], "base_url": p.host.base(),
		"probe": map[string]any{"method": "GET", "path": "/healthz", "statuses": []string{"200"}}, "endpoints": []any{endpoint},
	}
	if p.headers != nil {
		listing["headers"] = p.headers
	}
	status, answer := w.Admin(t, http.MethodPost, "/api/v1/services", listing)
	if status != http.StatusCreated {
		t.Fatalf("list: %d %v", status, answer)
	}
	p.host.turn()
}

// asking is the caller's request. Nothing in it may come back but through the service's own doing.
func (p *played) asking(w *apptest.World) apptest.Asking {
	a := apptest.Ask(w.URL + "/s/" + p.slug + "/work")
	if p.get {
		a.Method, a.Body = http.MethodGet, ""
	}
	if p.big {
		a.Body = `{"n":1,"of":"` + strings.Repeat("x", 1<<20-20) + `"}`
	}
	return a
}

// play makes the row's calls, at one of the doors of the market.
func (p *played) play(t testing.TB, w, door *apptest.World) {
	t.Helper()
	p.list(t, w)
	n := max(p.row.calls, 1)
	p.payer = w.Payer(t, uint64(n)*apptest.PriceUnits) //nolint:gosec // a small number
	a := p.asking(door)
	if door != w { // another replica, which hears of the listing a moment later
		apptest.Eventually(t, "the other replica knows the service", func() bool { return door.Send(t, a, "").Status != http.StatusNotFound })
	}
	terms := w.Challenge(t, p.asking(w)) // by whichever door, the terms are the same
	for range n {
		p.calls = append(p.calls, send(t, a, w.Sign(t, p.payer, terms)))
	}
}

// caller takes answers as they come.
var caller = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}

// A got is what the caller got.
type got struct {
	apptest.Answer
	broken  bool   // it did not end
	outcome string // wherever it stood
}

func send(t testing.TB, a apptest.Asking, paid string) got {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), a.Method, a.URL, strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	if a.Body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept-Encoding", "gzip")
	r.Header.Set(payment.HeaderSignature, paid)
	response, err := caller.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	g := got{Answer: apptest.Answer{Status: response.StatusCode, Header: response.Header, Body: body}, broken: err != nil}
	if response.Header.Get("Content-Type") == "application/problem+json" {
		if err := json.Unmarshal(body, &g.JSON); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	g.outcome = g.Outcome()
	for name, values := range response.Trailer {
		if name != "Market-Outcome" || g.outcome != "" || len(values) > 1 || len(values) == 0 != g.broken {
			t.Errorf("the caller got the trailer %s: %q", name, values)
		}
		g.outcome = strings.Join(values, "")
	}
	return g
}
