package hostiletest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/chain"
	"market/internal/delivery"
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
	calls  []apptest.Answer
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
		"method": "POST", "path": "/work", "price_usd": "0.002", "description": "Work",
		"input_schema": map[string]any{"type": "object", "required": []string{"n"}},
	}
	if p.get {
		endpoint["method"] = "GET"
		delete(endpoint, "input_schema")
	}
	maps.Copy(endpoint, p.listing)
	status, answer := w.Admin(t, http.MethodPost, "/api/v1/services", map[string]any{
		"slug": p.slug, "name": p.name[:min(len(p.name), 80)], "base_url": p.host.base(),
		"probe": map[string]any{"method": "GET", "path": "/healthz", "statuses": []string{"200"}}, "endpoints": []any{endpoint},
	})
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
	terms := w.Challenge(t, p.asking(w)) // by whichever door, the terms are the same
	for range n {
		p.calls = append(p.calls, send(t, a, w.Sign(t, p.payer, terms)))
	}
}

// caller takes answers as they come.
var caller = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}}

func send(t testing.TB, a apptest.Asking, paid string) apptest.Answer {
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
	if err != nil {
		t.Fatal(err)
	}
	got := apptest.Answer{Status: response.StatusCode, Header: response.Header, Body: body}
	if response.Header.Get("Content-Type") == "application/problem+json" {
		if err := json.Unmarshal(body, &got.JSON); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	if len(response.Trailer) > 0 {
		t.Errorf("the caller got trailers: %v", response.Trailer)
	}
	return got
}

// judge holds what can be seen at once against the row.
func (p *played) judge(t testing.TB, w *apptest.World) {
	t.Helper()
	for _, a := range p.calls {
		p.judgeAnswer(t, a)
		leaks(t, a, p.want)
		if p.want.cost == notCharged {
			continue
		}
		r := w.Record(t, a.Call())
		if r.JSON["outcome"] != string(p.want.outcome) || r.JSON["reason"] != string(p.want.reason) || r.JSON["party"] != string(p.want.party) ||
			r.JSON["charged"] != (p.want.cost == charged) || r.JSON["asked"] != true {
			t.Errorf("the record says outcome %v, reason %v, party %v, charged %v, asked %v; want %+v", r.JSON["outcome"], r.JSON["reason"], r.JSON["party"],
				r.JSON["charged"], r.JSON["asked"], p.want)
		}
	}
	if n := w.OpenStrikes(t, p.slug); len(n) != map[bool]int{true: 1}[p.want.strike] {
		t.Errorf("open strikes %v, want one: %v", n, p.want.strike)
	}
	if got := w.Rest(t, p.slug); got > p.want.rests || got < p.want.rests-20*time.Second {
		t.Errorf("the service rests for %s, want about %s", got, p.want.rests)
	}
	asked := p.row.asked
	switch asked {
	case 0:
		asked = len(p.calls)
	case none:
		asked = 0
	}
	if got := int(p.host.asked.Load()); got != asked {
		t.Errorf("the service was asked %d times, want %d", got, asked)
	}
	if got := p.host.conns.Load(); p.guarded && got != 0 {
		t.Errorf("it was connected to %d times", got)
	}
	p.host.paths.Range(func(path, _ any) bool {
		if path != probeTo && path != workTo {
			t.Errorf("the service was asked for %s", path)
		}
		return true
	})
}

func (p *played) judgeAnswer(t testing.TB, a apptest.Answer) {
	t.Helper()
	w := p.want
	if a.Status != w.status || a.Outcome() != string(w.outcome) {
		t.Errorf("the caller got %d with outcome %q, want %d with %q: %.300s", a.Status, a.Outcome(), w.status, w.outcome, a.Body)
		return
	}
	if w.outcome == call.Served {
		if string(a.Body) != w.body {
			t.Errorf("the caller got %d bytes %.100q, want %d %.100q", len(a.Body), a.Body, len(w.body), w.body)
		}
		if got := a.Header.Get("Cache-Control"); got != "private, no-store" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("a served answer may be kept (%q), or its type guessed", got)
		}
		return
	}
	if a.Code() != string(w.reason) || a.JSON["party"] != string(w.party) || a.JSON["charged"] != false {
		t.Errorf("the caller was told code %s, party %v, charged %v; want %+v", a.Code(), a.JSON["party"], a.JSON["charged"], w)
	}
	if w.cost == refunded && (a.Refund("state") == "" || a.Refund("amount") != "2000") {
		t.Errorf("the caller was told of the refund %v", a.JSON["refund"])
	}
	if got, _ := json.Marshal(a.JSON["service_answer"]); w.outcome == call.Refused && w.body != "" && string(got) != w.body {
		t.Errorf("service_answer is %.200s, want %.200s", got, w.body)
	}
	detail, _ := a.JSON["detail"].(string)
	if strings.Contains(detail, "127.0.0.1") || strings.Contains(detail, "evil") {
		t.Errorf("the detail says too much: %s", detail)
	}
	if p.guarded && !strings.Contains(detail, "not public") {
		t.Errorf("it is refused for another reason than its address: %s", detail)
	}
}

// ours are the headers that an answer of the market has, and those of a service that it passes on.
var ours = []string{
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Cache-Control", "Content-Length", "Content-Security-Policy", "Content-Type",
	"Date", "Market-Call", "Market-Outcome", "Payment-Response", "Retry-After", "Vary", "X-Content-Type-Options",
	"Content-Disposition", "Content-Encoding", "Content-Language", "Etag", "Last-Modified",
}

// leaks says what came through of the service that should not. What it serves is its own affair, and so is why it turns a request down, even its
// own example.
func leaks(t testing.TB, a apptest.Answer, w want) {
	t.Helper()
	for name, values := range a.Header {
		if !slices.Contains(ours, name) || len(values) != 1 || strings.Contains(values[0], "evil") {
			t.Errorf("the caller got %s: %.200q", name, values)
		}
	}
	if w.outcome == call.Failed && w.reason != call.ListingBroken && bytes.Contains(a.Body, []byte("evil")) {
		t.Errorf("the caller was shown what the service said: %s", a.Body)
	}
}

// balanced says whether the chain has moved for the row what its calls cost, and nothing else.
func (p *played) balanced(t testing.TB, w *apptest.World, in, out []apptest.Transfer) bool {
	t.Helper()
	paid, back, ok := 0, 0, true
	for _, m := range in {
		if m.From == p.payer.Address() {
			paid++
		}
	}
	for _, m := range out {
		if m.To == p.payer.Address() {
			back++
		}
	}
	wantPaid, wantBack := len(p.calls), 0
	switch p.want.cost {
	case refunded:
		wantBack = wantPaid
	case notCharged:
		wantPaid = 0
	case charged:
	}
	if paid != wantPaid || back != wantBack {
		ok = false
		t.Errorf("%s: %d payments and %d refunds on the chain, want %d and %d", p.name, paid, back, wantPaid, wantBack)
	}
	left := uint64(len(p.calls)-wantPaid+wantBack) * apptest.PriceUnits //nolint:gosec // a small number
	if got := w.Balance(t, p.payer.Address()); got != left {
		ok = false
		t.Errorf("%s: the payer has %d units, want %d", p.name, got, left)
	}
	return ok
}

const openSQL = `
SELECT (SELECT count(*) FROM calls WHERE state IN ('settling', 'unknown', 'rejected', 'expired', 'settled', 'asked') OR payment_state IN ('sent', 'mined'))
     + (SELECT count(*) FROM refunds WHERE state <> 'confirmed')`

// settled waits until every call and every refund has ended, and sees that the books add up.
func settled(t testing.TB, w *apptest.World) {
	t.Helper()
	apptest.Eventually(t, "every call and every refund has ended", func() bool {
		if err := w.Chain.Mine(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var open int
		if err := w.DB.QueryRow(t.Context(), openSQL).Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	})
	figures, err := delivery.PromiseOne(t.Context(), w.DB)
	if err != nil {
		t.Fatal(err)
	}
	if !figures.Balanced() {
		t.Errorf("the books do not balance: %s", figures)
	}
}
