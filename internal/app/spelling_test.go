package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"market/internal/app/apptest"
	"market/internal/payment"
)

// How slashes, letters and ends of a path are written by those who look for a way around a gate; the routing function is tried with every pair of
// many more, see catalog's TestSpelling.
var (
	rawSlashes = []string{"//", "/./", "/%2e/", "/x/../", "/x/%2e%2e/", "/x/.%2E/", "/x/%252e%252e/", "/..;/", "/;a=b/", "%2f", "%2F", "%252f", "%5c", `\`, "%c0%af", "%ef%bc%8f", "/%00/", "/../",
		"/%2e%2e/"}
	rawEnds = []string{"/", "//", "/.", "/..", "/%2e%2e", ".", ";", ";x=1", "%3b", "%3bx=1", "%00", "%20", "%09", "%0a", "%2f", "%5c", `\`, "%3f", "%3fx=1", "#", "#x", "%23", "%ff", "%c0%80", "~", "*",
		".json", "%2ejson", "::$DATA", "/..;/work"}
)

// A recorder is a service that knows by which targets it was asked.
type recorder struct {
	mu      sync.Mutex
	targets []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	if in.RequestURI != "/base/v2/healthz" {
		r.mu.Lock()
		r.targets = append(r.targets, in.RequestURI)
		r.mu.Unlock()
	}
	apptest.Works(w, in)
}

// taken returns what was seen since it was last called.
func (r *recorder) taken() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.targets
	r.targets = nil
	return seen
}

// mutate writes a path of three segments in every way: each slash in it, each letter's escape, each end, and a few whole.
func mutate(prefix, service, path string) []string {
	plain := "/" + prefix + "/" + service + "/" + path
	var all []string
	for _, slash := range rawSlashes {
		for at := range plain {
			if plain[at] == '/' {
				all = append(all, plain[:at]+slash+plain[at+1:])
			}
		}
	}
	for at, c := range []byte(plain) {
		if c == '/' {
			continue
		}
		for _, written := range []string{fmt.Sprintf("%%%02x", c), fmt.Sprintf("%%25%02x", c), strings.ToUpper(string(c)), fmt.Sprintf("%%c1%%%02x", c|0x80), string(c) + "%00"} {
			if written != string(c) {
				all = append(all, plain[:at]+written+plain[at+1:])
			}
		}
	}
	for _, end := range rawEnds {
		all = append(all, plain+end)
	}
	return append(all, plain+"/"+strings.Repeat("a/", 2000), "/"+strings.Repeat("/", 3000)+plain, "/..%2f.."+plain, "/x/.."+plain, "/static/../"+plain, "/api/v1/.."+plain, "/"+service+"/"+path, "//evil.test"+plain,
		"*", "/?"+plain, "/%3f"+plain, "/#"+plain, "market.test:443", "http://evil.test/x/.."+plain)
}

// B107: whatever the spelling of a path with a price, over a connection on which nothing is tidied up: nobody is served, not with a payment for
// the path that it resembles, not as a trial, and the service is not asked. The one free call is for its own path.
func TestSpelling_NoWrittenPathIsServedOrReachesAnythingElse(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	service := &recorder{}
	upstream := httptest.NewServer(service)
	t.Cleanup(upstream.Close)
	status, made := w.Admin(t, http.MethodPost, "/api/v1/services", map[string]any{
		"slug": "spelt", "name": "Spelt", "base_url": upstream.URL + "/base/v2", "probe": map[string]any{"path": "/healthz", "statuses": []string{"200"}},
		"endpoints": []any{
			map[string]any{"method": "POST", "path": "/work", "price_usd": "0.002"},
			map[string]any{"method": "POST", "path": "/free", "price_usd": "0.001", "trial_calls_per_day": 100_000},
			map[string]any{"method": "POST", "path": "/of/{id}", "price_usd": "0.001", "trial_calls_per_day": 100_000},
			map[string]any{"method": "POST", "path": "/of/work", "price_usd": "0.002"},
		},
	})
	if status != http.StatusCreated {
		t.Fatalf("list: %d %v", status, made)
	}
	asking := apptest.Ask(w.URL + "/s/spelt/work")
	paid := payment.HeaderSignature + ": " + w.Sign(t, w.Payer(t, 10*apptest.PriceUnits), w.Challenge(t, asking))

	var tries errgroup.Group
	tries.SetLimit(16)
	tried := 0
	try := func(target string, mayServe bool, headers ...string) {
		tried++
		tries.Go(func() error {
			a := w.SendBytes(t, http.MethodPost, target, `{}`, headers...)
			if a.Status < 300 && !mayServe || a.Outcome() == "served" && !mayServe || a.Status >= 500 {
				t.Errorf("%.200q, %d headers: %d %.300s", target, len(headers), a.Status, a.Body)
			}
			return nil
		})
	}
	for _, target := range mutate("s", "spelt", "work") {
		try(target, false)
		try(target, false, paid)
		try("http://market.test"+target, false, paid)
	}
	for _, target := range mutate("try", "spelt", "work") {
		try(target, false)
	}
	for _, target := range mutate("try", "spelt", "of/work") {
		try(target, strings.HasPrefix(target, "/try/spelt/of/")) // as another value of /of/{id}
	}
	for _, target := range mutate("try", "spelt", "free") {
		try(target, false)
	}
	for _, target := range mutate("api", "v1", "admin/strikes") {
		try(target, false)
	}
	if err := tries.Wait(); err != nil {
		t.Fatal(err)
	}
	if tried < 1000 {
		t.Errorf("%d requests were sent", tried)
	}
	const below = "/base/v2/of/"
	seen := service.taken()
	for _, target := range seen {
		id, ok := strings.CutPrefix(target, below)
		if !ok || id == "work" || id == "" || strings.ContainsAny(id, `/\?#;`) || id == "." || id == ".." {
			t.Errorf("the service was asked for %q", target)
		}
	}
	if len(seen) == 0 {
		t.Error("no value of /of/{id} came through: nothing was tried")
	}
	// A target with a scheme and a host, whatever they are, is for the path in it, and that has its price.
	for _, before := range []string{"http://market.test", "https://evil.test:99", "http:", "file://", "evil://user@evil.test"} {
		if a := w.SendBytes(t, http.MethodPost, before+"/s/spelt/work", `{}`); a.Status != http.StatusPaymentRequired {
			t.Errorf("%s: %d %s", before, a.Status, a.Body)
		}
	}
	// The payment that opened none of them is good for its path, as it is listed.
	if a := w.SendBytes(t, http.MethodPost, "/s/spelt/work", `{"n":1}`, paid); a.Status != http.StatusOK {
		t.Errorf("the path as it is listed: %d %s", a.Status, a.Body)
	}
	if got := service.taken(); len(got) != 1 || got[0] != "/base/v2/work" {
		t.Errorf("the service was asked for %q", got)
	}
}
