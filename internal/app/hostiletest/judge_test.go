package hostiletest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
)

// judge holds what can be seen at once against the row.
func (p *played) judge(t testing.TB, w *apptest.World) {
	t.Helper()
	for _, a := range p.calls {
		p.judgeAnswer(t, a)
		leaks(t, a.Answer, p.want)
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

func (p *played) judgeAnswer(t testing.TB, a got) {
	t.Helper()
	w := p.want
	told := string(w.outcome)
	if w.breaks {
		told = "" // but in the record
	}
	if a.Status != w.status || a.outcome != told || a.broken != w.breaks {
		t.Errorf("the caller got %d with outcome %q, broken: %v; want %d with %q: %.300s", a.Status, a.outcome, a.broken, w.status, told, a.Body)
		return
	}
	if w.breaks {
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

// key is what some listings have us send in X-Api-Key. No caller may come to see it but in what it pays for.
const key = "key-of-the-listing-0123456789"

// ours are the headers that an answer of the market has, and those of a service that it passes on.
var ours = []string{
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Cache-Control", "Content-Length", "Content-Security-Policy", "Content-Type",
	"Date", "X-Accel-Buffering", "Market-Call", "Market-Outcome", "Payment-Response", "Retry-After", "Vary", "X-Content-Type-Options",
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
	if w.outcome != call.Served && (bytes.Contains(a.Body, []byte(key[:8])) || bytes.Contains(a.Body, []byte("mks_"))) {
		t.Errorf("the caller was shown a secret: %s", a.Body)
	}
	if w.outcome == call.Failed && !w.breaks && w.reason != call.ListingBroken && bytes.Contains(a.Body, []byte("evil")) {
		t.Errorf("the caller was shown what the service said: %s", a.Body)
	}
}
