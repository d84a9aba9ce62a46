package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
)

var (
	answers = apptest.Answers
	hangsUp = apptest.HangsUp
	sleeps  = apptest.Sleeps
)

// An ending is what one call of a service that does so comes to.
type ending struct {
	work    http.HandlerFunc
	listing map[string]any
	status  int
	code    string
	outcome string
	strikes int
	rests   time.Duration // at least so long; zero: not at all
}

const cooldown = 50 * time.Second // of the 60 that a service rests, what is left when the test looks

var endings = map[string]ending{
	"it fails":                    {apptest.Fails, nil, 502, "upstream_5xx", "failed", 1, cooldown},
	"it is being repaired":        {answers(503, ""), nil, 502, "upstream_5xx", "failed", 1, cooldown},
	"it asks for credentials":     {answers(401, ""), nil, 502, "upstream_auth", "failed", 1, cooldown},
	"it asks for its own payment": {answers(402, "", "PAYMENT-REQUIRED: e30="), nil, 502, "upstream_payment_required", "failed", 1, cooldown},
	"it sends us elsewhere":       {answers(302, "", "Location: http://127.0.0.1:9/stolen"), nil, 502, "upstream_redirect", "failed", 1, cooldown},
	"it sends us to itself":       {answers(307, "", "Location: /other"), nil, 502, "upstream_redirect", "failed", 1, cooldown},
	"it says that nothing changed": {
		answers(304, ""), nil, 502, "upstream_bad_response", "failed", 1, cooldown},
	"it is too slow": {sleeps, map[string]any{"timeout_ms": 200}, 504, "upstream_timeout", "failed", 1, cooldown},
	"it stops in the middle": {hangsUp("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"done\":"), nil,
		502, "upstream_bad_response", "failed", 1, cooldown},
	"it hangs up": {hangsUp(""), nil, 502, "upstream_unreachable", "failed", 1, cooldown},
	"it breaks its promise": {answers(200, `{"other":1}`), map[string]any{"output_schema": map[string]any{"type": "object", "required": []string{"done"}}},
		502, "upstream_bad_response", "failed", 1, cooldown},
	"it answers HTML for JSON": {answers(200, `<html>`), map[string]any{"output_schema": map[string]any{"type": "object"}},
		502, "upstream_bad_response", "failed", 1, cooldown},
	"it refuses its own example": {answers(422, ""), map[string]any{"input_example": map[string]any{"n": 1}}, 502, "listing_broken", "failed", 1, cooldown},

	// Shown to reviewers, and not counted: as likely a wrong listing as a broken service.
	"it is asked too often":                 {answers(429, ""), nil, 502, "upstream_throttled", "failed", 0, cooldown},
	"it is asked too often for two minutes": {answers(429, "", "Retry-After: 120"), nil, 502, "upstream_throttled", "failed", 0, 110 * time.Second},
	"it is asked too often for ever":        {answers(429, "", "Retry-After: 999999999"), nil, 502, "upstream_throttled", "failed", 0, 590 * time.Second},
	"its answer is larger than listed": {answers(200, strings.Repeat("x", 101)), map[string]any{"max_response_bytes": 100},
		502, "upstream_too_large", "failed", 0, cooldown},

	// The caller's doing: the money is back all the same.
	"it refuses the input":       {answers(422, `{"why":"no"}`), nil, 422, "rejected_by_service", "refused", 0, 0},
	"it finds the input bad":     {answers(400, `plain words`), nil, 400, "rejected_by_service", "refused", 0, 0},
	"it forbids the call":        {answers(403, ``), nil, 403, "rejected_by_service", "refused", 0, 0},
	"it finds nothing":           {answers(404, ``), nil, 404, "rejected_by_service", "refused", 0, 0},
	"it takes no such method":    {answers(405, ``), nil, 405, "rejected_by_service", "refused", 0, 0},
	"it finds the input too big": {answers(413, ``), nil, 413, "rejected_by_service", "refused", 0, 0},
}

// An ended call is what its caller got, and how long its service rested right after it.
type ended struct {
	service *apptest.Service
	answer  apptest.Answer
	rest    time.Duration
}

// The table of outcomes as a caller, its wallet and an admin see it: nobody pays for what was not served, and only evidence counts.
// B66, B67: we settle first, so whatever is not served is refunded in full.
func TestOutcomes_WhatIsNotServedIsRefundedAndCountsAsTheTableSays(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	funds := uint64(len(endings)) * apptest.PriceUnits
	payer := w.Payer(t, funds)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		ends = map[string]ended{}
	)
	n := 0
	for name, tt := range endings {
		n++
		s := w.List(t, fmt.Sprintf("ending-%d", n), tt.work, tt.listing)
		// At once, so that they share blocks and nobody waits for a chain of calls.
		wg.Go(func() {
			a := w.Pay(t, payer, w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL))
			rest := w.Rest(t, s.Slug)
			mu.Lock()
			defer mu.Unlock()
			ends[name] = ended{s, a, rest}
		})
	}
	wg.Wait()
	for name, tt := range endings {
		t.Run(name, func(t *testing.T) { tt.check(t, w, ends[name]) })
	}
	if got := w.Balance(t, payer.Address()); got != funds {
		t.Errorf("the payer has %d after all refunds, want %d", got, funds)
	}
}

func (e ending) check(t *testing.T, w *apptest.World, got ended) {
	t.Helper()
	s, a := got.service, got.answer
	expect(t, "the call", a, e.status, e.code)
	if t.Failed() {
		return // nothing below would come to be
	}
	if a.Outcome() != e.outcome || a.JSON["charged"] != false || a.Refund("state") == "" || a.Refund("amount") != "2000" {
		t.Errorf("outcome %s, charged %v, refund %v", a.Outcome(), a.JSON["charged"], a.JSON["refund"])
	}
	if s.Asked() != 1 {
		t.Errorf("the service was asked %d times", s.Asked())
	}
	if open := w.OpenStrikes(t, s.Slug); len(open) != e.strikes {
		t.Errorf("open strikes %v, want %d", open, e.strikes)
	}
	if got.rest < e.rests || (got.rest > 0) != (e.rests > 0) {
		t.Errorf("it rests for %s, want at least %s", got.rest, e.rests)
	}
	gate := map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusPaymentRequired}[e.rests > 0]
	apptest.Eventually(t, fmt.Sprintf("an unpaid request gets %d", gate), func() bool {
		return w.Send(t, apptest.Ask(s.URL), "").Status == gate
	})
	if w.AwaitRefund(t, a.Call()) == "" {
		t.Error("the refund names no transaction")
	}
	r := w.Record(t, a.Call())
	if r.JSON["outcome"] != e.outcome || r.JSON["reason"] != e.code || r.JSON["asked"] != true || r.JSON["charged"] != false {
		t.Errorf("the record is %s", r.Body)
	}
}

// A refusal of the service keeps its status, and its words stand in our document.
func TestOutcomes_ARefusalOfTheServiceIsShownInOurWords(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "refuses", nil, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, 100*apptest.PriceUnits)
	for name, tt := range map[string]struct {
		body string
		want any
	}{
		"JSON stays JSON":                    {`{"why":["no",1]}`, map[string]any{"why": []any{"no", 1.0}}},
		"text becomes a string":              {"no <b>such</b> thing", "no <b>such</b> thing"},
		"nothing is left out":                {"", nil},
		"what is no text is left out":        {"\x00\xff", nil},
		"long text is cut":                   {strings.Repeat("a", 10_000), strings.Repeat("a", 4096)},
		"a problem of its own is not a part": {`{"code":"ok","charged":true,"refund":null}`, map[string]any{"code": "ok", "charged": true, "refund": nil}},
	} {
		s.Do(answers(http.StatusForbidden, tt.body))
		a := w.Pay(t, payer, terms, apptest.Ask(s.URL))
		expect(t, name, a, http.StatusForbidden, "rejected_by_service")
		if got := a.JSON["service_answer"]; fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: service_answer is %.80v, want %.80v", name, got, tt.want)
		}
		if a.JSON["service_status"] != 403.0 || a.JSON["charged"] != false || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", name, a.Body)
		}
	}
}

// "There is none" is a result that a listing may sell.
func TestOutcomes_ADeclaredStatusIsServedAndCharged(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "finds", answers(404, `{"found":false}`, "Content-Type: application/json"),
		map[string]any{"served_statuses": []int{404}, "output_schema": map[string]any{"type": "object", "required": []string{"found"}}})
	payer := w.Payer(t, 2*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	a := w.Pay(t, payer, terms, apptest.Ask(s.URL))
	if a.Status != http.StatusNotFound || a.Outcome() != "served" || a.JSON["found"] != false {
		t.Errorf("a declared 404: %d %s, outcome %s", a.Status, a.Body, a.Outcome())
	}
	if r := w.Record(t, a.Call()); r.JSON["charged"] != true || r.JSON["refund"] != nil || r.JSON["service_status"] != 404.0 {
		t.Errorf("its record is %s", r.Body)
	}
	if got := w.Balance(t, payer.Address()); got != apptest.PriceUnits {
		t.Errorf("the payer has %d, want %d", got, apptest.PriceUnits)
	}
	s.Do(answers(410, ""))
	expect(t, "a 410 that is not declared", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusGone, "rejected_by_service")
}
