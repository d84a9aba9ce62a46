package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/devnet"
	"market/internal/payment"
)

// B19: what callers are told to pay for is built from our public URL, and never from what a request says of itself.
func TestChallenge_NamesOurPublicURLWhateverTheRequestSays(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_PUBLIC_URL=https://market.example", "MARKET_TRUSTED_PROXIES=127.0.0.0/8")
	w.List(t, "named", apptest.Works, nil)
	const want = "https://market.example/s/named/work"
	for name, headers := range map[string][]string{
		"its host":                       {"Host: evil.test"},
		"no host that is known":          {"Host: 127.0.0.1:1"},
		"forwarded by a proxy of ours":   {"X-Forwarded-Host: evil.test", "X-Forwarded-Proto: http", "X-Forwarded-Port: 8080"},
		"forwarded in the standard form": {"Forwarded: host=evil.test;proto=http"},
		"another path":                   {"X-Original-URL: /s/other/work", "X-Rewrite-URL: /s/other/work", "X-Forwarded-Prefix: /evil"},
	} {
		a := w.SendBytes(t, http.MethodPost, "/s/named/work?x=1", `{"n":1}`, headers...)
		if a.Status != http.StatusPaymentRequired {
			t.Fatalf("%s: %d %s", name, a.Status, a.Body)
		}
		v2 := apptest.Decode(t, a.Header.Get(payment.HeaderRequired))
		resource, _ := v2["resource"].(map[string]any)
		if resource["url"] != want {
			t.Errorf("%s: the header names %v, want %s", name, resource["url"], want)
		}
		entry := first(a.JSON["accepts"])
		if entry["resource"] != want {
			t.Errorf("%s: the body names %v, want %s", name, entry["resource"], want)
		}
	}
}

func first(list any) map[string]any {
	items, _ := list.([]any)
	if len(items) == 0 {
		return nil
	}
	item, _ := items[0].(map[string]any)
	return item
}

// One 402 serves both versions of x402 and people: read here with the standard library alone.
func TestChallenge_SpeaksBothVersionsAndIsAProblem(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "spoken", apptest.Works, nil)
	a := w.Send(t, apptest.Ask(s.URL), "")

	v2 := apptest.Decode(t, a.Header.Get(payment.HeaderRequired))
	entry := first(v2["accepts"])
	extra, _ := entry["extra"].(map[string]any)
	for member, is := range map[string]struct{ got, want any }{
		"x402Version":       {v2["x402Version"], 2.0},
		"scheme":            {entry["scheme"], "exact"},
		"network":           {entry["network"], devnet.NetworkID},
		"amount":            {entry["amount"], "2000"},
		"asset":             {entry["asset"], devnet.TokenAddress().Hex()},
		"payTo":             {entry["payTo"], w.Treasury.Hex()},
		"maxTimeoutSeconds": {entry["maxTimeoutSeconds"], 120.0},
		"extra.name":        {extra["name"], devnet.TokenName},
		"extra.version":     {extra["version"], devnet.TokenVersion},
		"extra.paymentFlow": {extra["paymentFlow"], "upfront"},
	} {
		if is.got != is.want {
			t.Errorf("the header's %s is %v, want %v", member, is.got, is.want)
		}
	}
	v1 := first(a.JSON["accepts"])
	v1Extra, _ := v1["extra"].(map[string]any)
	for member, is := range map[string]struct{ got, want any }{
		"x402Version":       {a.JSON["x402Version"], 1.0},
		"error":             {a.JSON["error"], v2["error"]},
		"scheme":            {v1["scheme"], "exact"},
		"network":           {v1["network"], devnet.V1Name},
		"maxAmountRequired": {v1["maxAmountRequired"], "2000"},
		"resource":          {v1["resource"], s.URL},
		"payTo":             {v1["payTo"], w.Treasury.Hex()},
		"extra.name":        {v1Extra["name"], devnet.TokenName},
		"type":              {a.JSON["type"], w.App.URL() + "/rules#payment_required"},
		"status":            {a.JSON["status"], 402.0},
		"code":              {a.JSON["code"], "payment_required"},
		"party":             {a.JSON["party"], "caller"},
		"charged":           {a.JSON["charged"], false},
		"Content-Type":      {a.Header.Get("Content-Type"), "application/json"},
		"Cache-Control":     {a.Header.Get("Cache-Control"), "no-store"},
	} {
		if is.got != is.want {
			t.Errorf("the body's %s is %v, want %v", member, is.got, is.want)
		}
	}
	if size := len(a.Header.Get(payment.HeaderRequired)); size > 4096 {
		t.Errorf("the header has %d bytes", size)
	}
}

// B11: a long description is left out of the header, and never the terms.
func TestChallenge_StaysSmallWithALongDescription(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "wordy", apptest.Works, map[string]any{"description": strings.Repeat("\u65e5", 500)})
	a := w.Send(t, apptest.Ask(s.URL), "")
	if header := a.Header.Get(payment.HeaderRequired); len(header) > 4096 || first(apptest.Decode(t, header)["accepts"])["amount"] != "2000" {
		t.Errorf("the header has %d bytes: %v", len(header), apptest.Decode(t, header))
	}
	if a = w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Errorf("it can't be paid: %d %s", a.Status, a.Body)
	}
}

// A price that was quoted a moment ago holds; one that was quoted long ago does not.
func TestPrices_AnOldPriceIsAcceptableForTheQuoteValidity(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_QUOTE_VALIDITY=10m")
	s := w.List(t, "dearer", apptest.Works, nil)
	payer := w.Payer(t, 100*apptest.PriceUnits)
	old := w.Challenge(t, apptest.Ask(s.URL))
	_, service := w.Admin(t, http.MethodGet, "/api/v1/services/dearer", nil)
	endpoint, _ := first(service["endpoints"])["id"].(string)
	status, changed := w.Admin(t, http.MethodPatch, "/api/v1/services/dearer/endpoints/"+endpoint, map[string]any{"price_usd": "0.003"})
	if status != http.StatusOK || changed["price_usd"] != "0.003" {
		t.Fatalf("change the price: %d %v", status, changed)
	}
	now := w.Challenge(t, apptest.Ask(s.URL))
	if got := now.Accepts[0].Amount.String(); got != "3000" {
		t.Errorf("the new price is %s, want 3000", got)
	}
	if a := w.Pay(t, payer, old, apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Errorf("the old price right after the change: %d %s", a.Status, a.Body)
	}
	w.Shift(t, 10*time.Minute)
	var late apptest.Answer
	apptest.Eventually(t, "the old price is refused", func() bool {
		late = w.Pay(t, payer, old, apptest.Ask(s.URL))
		return late.Status != http.StatusOK
	})
	expect(t, "the old price after the quote validity", late, http.StatusPaymentRequired, "payment_mismatch")
	if got := first(apptest.Decode(t, late.Header.Get(payment.HeaderRequired))["accepts"])["amount"]; got != "3000" {
		t.Errorf("the refusal offers %v, want 3000", got)
	}
	if a := w.Pay(t, payer, now, apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Errorf("the new price: %d %s", a.Status, a.Body)
	}
}
