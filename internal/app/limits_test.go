package app_test

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
)

// restOver is just longer than a cooldown.
const restOver = 61 * time.Second

// Provoking failures costs more than it hurts: who has too many calls refunded at an endpoint is refused there before anything is claimed.
func TestRefundLimit_TooManyRefundedCallsOfOnePayerRestItAtThatEndpoint(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_REFUND_LIMIT=2/10m", "MARKET_STRIKE_LIMIT=100")
	s, other := w.List(t, "provoked", apptest.Fails, nil), w.List(t, "calm", apptest.Works, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer, neighbour := w.Payer(t, 10*apptest.PriceUnits), w.Payer(t, 10*apptest.PriceUnits)
	for n := 1; n <= 2; n++ {
		expect(t, "a failure", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusBadGateway, "upstream_5xx")
		w.Shift(t, restOver)
	}
	before := w.Rows(t)
	header := w.Sign(t, payer, terms)
	third := w.Send(t, apptest.Ask(s.URL), header)
	expect(t, "the third call", third, http.StatusTooManyRequests, "refund_limit")
	wait, err := strconv.Atoi(third.Header.Get("Retry-After"))
	if rest := time.Duration(wait) * time.Second; err != nil || rest < 8*time.Minute || rest > 10*time.Minute {
		t.Errorf("Retry-After is %q, want what is left of ten minutes", third.Header.Get("Retry-After"))
	}
	if third.JSON["charged"] != false || third.JSON["payment"] != nil || third.Header.Get("PAYMENT-RESPONSE") != "" {
		t.Errorf("the third call: %s, receipt %q", third.Body, third.Header.Get("PAYMENT-RESPONSE"))
	}
	after := w.Rows(t)
	if after.Calls != before.Calls || after.Deliveries != before.Deliveries || after.Refusals != before.Refusals+1 {
		t.Errorf("rows were %+v and are %+v, want one counted refusal more", before, after)
	}
	if s.Asked() != 2 {
		t.Errorf("the service was asked %d times", s.Asked())
	}

	if a := w.Pay(t, payer, w.Challenge(t, apptest.Ask(other.URL)), apptest.Ask(other.URL)); a.Status != http.StatusOK {
		t.Errorf("the payer at another endpoint: %d %s", a.Status, a.Body)
	}
	s.Do(apptest.Works)
	if a := w.Pay(t, neighbour, terms, apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Errorf("another payer at the endpoint: %d %s", a.Status, a.Body)
	}
	w.Shift(t, 10*time.Minute)
	if a := w.Send(t, apptest.Ask(s.URL), header); a.Status != http.StatusOK {
		t.Errorf("the payment that was not used, after the rest: %d %s", a.Status, a.Body)
	}
}

// What we, the cooldown or the rail refused is no provocation.
func TestRefundLimit_RefusalsInACooldownDoNotCount(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_REFUND_LIMIT=2/10m")
	s := w.List(t, "patient", apptest.Fails, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, 10*apptest.PriceUnits)
	expect(t, "a failure", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusBadGateway, "upstream_5xx")
	for range 3 {
		expect(t, "a call in the cooldown", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusServiceUnavailable, "in_cooldown")
	}
	w.Shift(t, restOver)
	s.Do(apptest.Works)
	if a := w.Pay(t, payer, terms, apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Errorf("the call after the cooldown: %d %s", a.Status, a.Body)
	}
}

// Refusals cost their sender nothing, so what they leave behind is bounded: a row each for the first sixty a minute, then a count.
func TestRefusals_AMinuteOfOneAddressHasSixtyRowsAndAllAreCounted(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8")
	w.ShiftInto(t, "minute", time.Minute, time.Second)
	s := w.List(t, "refusing", apptest.Works, nil)
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))
	bad := apptest.Ask(s.URL).With(`{"n":"x"}`)
	bad.Header = http.Header{"X-Forwarded-For": {"198.51.100.7"}}
	const refusals = 100
	answers := make([]apptest.Answer, refusals)
	send := func(answers []apptest.Answer, beside int) {
		var senders sync.WaitGroup
		for each := range slices.Chunk(answers, len(answers)/beside) {
			senders.Go(func() {
				for i := range each {
					each[i] = w.Send(t, bad, header)
				}
			})
		}
		senders.Wait()
	}
	// All of this has to happen within the minute. Those that race for the last rows may overshoot, so there they come one after another.
	send(answers[:50], 10)
	send(answers[50:70], 1)
	send(answers[70:], 10)
	var kept []string
	for _, a := range answers {
		expect(t, "bad input", a, http.StatusUnprocessableEntity, "input_invalid")
		if a.Call() != "" {
			kept = append(kept, a.Call())
		}
	}
	if rows := w.Rows(t); rows != (apptest.Rows{Deliveries: 60, Refusals: refusals}) || len(kept) != 60 {
		t.Errorf("rows %+v and %d calls that can be looked up, want 60, 60 and a count of %d", rows, len(kept), refusals)
	}
	// A neighbour in the same range shares its rows, another range has its own, and payment headers are only counted.
	for name, tt := range map[string]struct {
		from, payment, code string
		status, rows        int
	}{
		"the same range":              {"198.51.100.200", header, "input_invalid", http.StatusUnprocessableEntity, 0},
		"another range":               {"198.51.101.7", header, "input_invalid", http.StatusUnprocessableEntity, 1},
		"a malformed payment":         {"203.0.113.7", "!!!", "payment_malformed", http.StatusBadRequest, 0},
		"IPv6, in a range of its own": {"2001:db8:1::1", header, "input_invalid", http.StatusUnprocessableEntity, 1},
	} {
		before := w.Rows(t)
		bad.Header = http.Header{"X-Forwarded-For": {tt.from}}
		expect(t, name, w.Send(t, bad, tt.payment), tt.status, tt.code)
		after := w.Rows(t)
		if after.Deliveries-before.Deliveries != tt.rows || after.Refusals-before.Refusals != 1 {
			t.Errorf("%s: rows were %+v and are %+v, want %d more and one count", name, before, after, tt.rows)
		}
	}
	for _, id := range kept {
		if r := w.Record(t, id); r.JSON["reason"] != "input_invalid" || r.JSON["charged"] != false {
			t.Errorf("the record of one is %s", r.Body)
		}
	}
	if s.Asked() != 0 {
		t.Errorf("the service was asked %d times", s.Asked())
	}
}
