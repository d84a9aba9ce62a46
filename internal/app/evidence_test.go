package app_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
)

// at is the value at a path of members and indexes of a decoded answer.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, _ := v.(map[string]any)
			v = object[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				t.Fatalf("there is no %v of %v", path, v)
			}
			v = list[step]
		}
	}
	return v
}

// calling is a request by a caller whose address a proxy of ours forwards.
func calling(url, from string) apptest.Asking {
	a := apptest.Ask(url)
	a.Header = http.Header{"X-Forwarded-For": {from}}
	return a
}

func TestStrikes_TheirEvidenceIsShownWholeToAdminsAndInPartToTheProvider(t *testing.T) {
	t.Parallel()
	const key = "sk_live_0123456789"
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8")
	s := w.ListWith(t, "oracle", func(rw http.ResponseWriter, r *http.Request) {
		http.Error(rw, "no database for "+r.Header.Get("X-Api-Key"), http.StatusInternalServerError)
	}, nil, map[string]any{"headers": map[string]any{"X-Api-Key": key}})
	other := w.List(t, "weather", apptest.Works, nil)
	payer := w.Payer(t, 10*apptest.PriceUnits)
	if a := w.Pay(t, payer, w.Challenge(t, apptest.Ask(other.URL)), apptest.Ask(other.URL)); a.Status != http.StatusOK {
		t.Fatalf("the other service: %d %s", a.Status, a.Body)
	}
	asking := calling(s.URL, "203.0.113.7")
	failed := w.Pay(t, payer, w.Challenge(t, asking), asking)
	expect(t, "a failure", failed, http.StatusBadGateway, "upstream_5xx")

	_, queue := w.Admin(t, http.MethodGet, "/api/v1/admin/strikes", nil)
	status, whole := w.Admin(t, http.MethodGet, "/api/v1/admin/strikes/oracle", nil)
	_, part := w.Admin(t, http.MethodGet, "/api/v1/services/oracle/strikes", nil)
	if status != http.StatusOK || at(t, queue, "total") != 1.0 || at(t, queue, "services", 0, "service") != "oracle" {
		t.Fatalf("%d, queue %v", status, queue)
	}
	body := "no database for " + key + "\n"
	sum := sha256.Sum256([]byte(body))
	evidence := at(t, whole, "items", 0, "evidence", 0)
	for path, want := range map[string]any{
		"call": failed.Call(), "trial": false, "origin": "external", "payer": payer.Address().Hex(), "method": "POST", "path": "/work",
		"service_status": 500.0, "reason": "upstream_5xx", "error": "http: status 500", "source": "203.0.113.7",
	} {
		if got := at(t, evidence, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]any{
		"content_type": "text/plain; charset=utf-8", "snippet": "no database for [hidden]\n", "binary": false, "cut": false, "bytes": float64(len(body)),
		"sha256": hex.EncodeToString(sum[:]),
	} {
		if got := at(t, evidence, "answer", path); got != want {
			t.Errorf("answer %s: %v, want %v", path, got, want)
		}
	}
	if at(t, evidence, "others", "asked") != 1.0 || at(t, evidence, "others", "failed") != 0.0 {
		t.Errorf("others: %v, want the one that served", at(t, evidence, "others"))
	}
	if replica, _ := at(t, evidence, "replica").(string); len(replica) != 36 {
		t.Errorf("the process that asked: %q", replica)
	}
	for what, answer := range map[string]any{"the queue": at(t, queue, "services", 0), "an admin": at(t, whole, "summary"), "the provider": at(t, part, "summary")} {
		if at(t, answer, "words") != "1 of 1 from one address" || at(t, answer, "concentrated") != true || at(t, answer, "next") != "the next failure is strike 2 of 3" {
			t.Errorf("%s: %v", what, answer)
		}
	}
	of := at(t, part, "items", 0, "evidence", 0)
	if at(t, of, "source") != "203.0.113.0/24" || at(t, of, "replica") != nil || at(t, of, "payer") != payer.Address().Hex() || at(t, of, "answer", "snippet") != "no database for [hidden]\n" {
		t.Errorf("the provider sees %v", of)
	}
	for what, answer := range map[string]any{"the queue": queue, "an admin": whole, "the provider": part} {
		if text, _ := json.Marshal(answer); strings.Contains(string(text), key) {
			t.Errorf("%s sees the key: %s", what, text)
		} else if what == "the provider" && strings.Contains(string(text), "203.0.113.7") {
			t.Errorf("the provider sees who called: %s", text)
		}
	}
	for path, want := range map[string]int{
		"/api/v1/admin/strikes?limit=1": 200, "/api/v1/admin/strikes?limit=0": 400, "/api/v1/admin/strikes?limit=101": 400,
		"/api/v1/admin/strikes?cursor=x": 400, "/api/v1/admin/strikes?first=1": 400, "/api/v1/admin/strikes/nobody": 404, "/api/v1/services/nobody/strikes": 404,
	} {
		if status, answer := w.Admin(t, http.MethodGet, path, nil); status != want {
			t.Errorf("%s: %d %v, want %d", path, status, answer, want)
		}
	}
}

// One caller that knows how to make a service fail delists nobody, where evidence has to come from two networks.
func TestStrikes_OfOneNetworkHoldAServiceWhereTwoAreNeeded(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8", "MARKET_STRIKE_SOURCES=2")
	for slug, want := range map[string]string{"poisoned": "held", "broken": "delisted"} {
		s := w.List(t, slug, apptest.Fails, map[string]any{"trial_calls_per_day": 10})
		for n := range 3 {
			from := "203.0.113.7"
			if slug == "broken" {
				from = fmt.Sprintf("203.0.%d.7", n)
			}
			expect(t, slug, w.Send(t, calling(s.URL, from).Trial(), ""), http.StatusBadGateway, "upstream_5xx")
			w.Shift(t, 61*time.Second)
		}
		_, answer := w.Admin(t, http.MethodGet, "/api/v1/admin/strikes/"+slug, nil)
		if at(t, answer, "summary", "state") != want || at(t, answer, "delistings", 0, "kind") != want || at(t, answer, "summary", "open") != 3.0 {
			t.Errorf("%s: %v, want it %s", slug, at(t, answer, "summary"), want)
		}
		ends := map[string]int{"held": http.StatusServiceUnavailable, "delisted": http.StatusGone}[want]
		apptest.Eventually(t, slug+" is off the shelf", func() bool { return w.Send(t, apptest.Ask(s.URL), "").Status == ends })
	}
	_, queue := w.Admin(t, http.MethodGet, "/api/v1/admin/strikes?limit=1", nil)
	if at(t, queue, "services", 0, "service") != "poisoned" || at(t, queue, "total") != 2.0 {
		t.Errorf("first in the queue: %v", at(t, queue, "services"))
	}
	next, _ := at(t, queue, "next_cursor").(string)
	_, queue = w.Admin(t, http.MethodGet, "/api/v1/admin/strikes?limit=1&cursor="+next, nil)
	if at(t, queue, "services", 0, "service") != "broken" || at(t, queue, "next_cursor") != "" {
		t.Errorf("then comes %v", queue)
	}
}
