package app_test

import (
	"net/http"
	"sync"
	"testing"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/payment"
)

// wantReceipt checks that an answer carries a receipt of a proved payment in one version, and none in the other.
func wantReceipt(t *testing.T, what string, a apptest.Answer, v payment.Version, payer chain.Key) {
	t.Helper()
	name, other, network := payment.HeaderResponse, payment.HeaderV1Response, devnet.NetworkID
	if v == payment.V1 {
		name, other, network = other, name, devnet.V1Name
	}
	if a.Header.Get(name) == "" || a.Header.Get(other) != "" {
		t.Fatalf("%s: %s is %q, %s is %q", what, name, a.Header.Get(name), other, a.Header.Get(other))
	}
	receipt := apptest.Decode(t, a.Header.Get(name))
	transaction, _ := receipt["transaction"].(string)
	if receipt["success"] != true || receipt["network"] != network || receipt["payer"] != payer.Address().Hex() || len(transaction) != 66 {
		t.Errorf("%s: the receipt is %v", what, receipt)
	}
}

// B06, B22: a payment of x402 v1 buys a call, and is the same payment when it comes in the other version or in both.
func TestV1_APaymentIsServedOnceWhateverTheVersion(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "elder", apptest.Works, map[string]any{"description": "Погода 🌦"})
	payer := w.Payer(t, 100*apptest.PriceUnits)
	ask := apptest.Ask(s.URL)
	challenge, required := w.Send(t, ask, ""), w.Challenge(t, ask)
	if required.Description != "Погода 🌦" || first(challenge.JSON["accepts"])["description"] != "?????? ?" {
		t.Errorf("the description is %q in v2 and %v in v1", required.Description, first(challenge.JSON["accepts"])["description"])
	}
	header := w.SignV1(t, payer, challenge, nil)
	paid := w.Send(t, ask.V1(header), "")
	if paid.Status != http.StatusOK || paid.Outcome() != "served" {
		t.Fatalf("the call: %d %s", paid.Status, paid.Body)
	}
	wantReceipt(t, "the call", paid, payment.V1, payer)

	twin := apptest.InV2(t, header, required)
	for what, again := range map[string]struct {
		ask      apptest.Asking
		header   string
		answered payment.Version
	}{
		"again in v1":               {ask.V1(header), "", payment.V1},
		"again in v2":               {ask, twin, payment.V2},
		"again in both":             {ask.V1(header), twin, payment.V2},
		"again in v2 in both names": {ask.V1(twin), twin, payment.V2},
	} {
		a := w.Send(t, again.ask, again.header)
		if a.Status != http.StatusOK || a.Call() != paid.Call() || string(a.Body) != string(paid.Body) {
			t.Errorf("%s: %d, call %s, want %s: %s", what, a.Status, a.Call(), paid.Call(), a.Body)
		}
		wantReceipt(t, what, a, again.answered, payer)
	}
	other := w.SignV1(t, payer, challenge, nil)
	expect(t, "two payments in one request", w.Send(t, ask.V1(other), twin), http.StatusBadRequest, "payment_malformed")
	if got := w.Balance(t, w.Treasury); got != apptest.PriceUnits || s.Asked() != 1 {
		t.Errorf("the treasury holds %d after one payment, and the service was asked %d times", got, s.Asked())
	}

	// The resource of v2 carries the description whole, there and back.
	if a := w.Pay(t, payer, required, ask); a.Status != http.StatusOK {
		t.Errorf("a payment that echoes other scripts: %d %s", a.Status, a.Body)
	}
}

// One authorization that is sent in both versions at once moves its money once, and both requests are of one call.
func TestV1_BothVersionsAtOnceAreOnePayment(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "twins", apptest.Works, nil)
	payer := w.Payer(t, 100*apptest.PriceUnits)
	ask := apptest.Ask(s.URL)
	header := w.SignV1(t, payer, w.Send(t, ask, ""), nil)
	twin := apptest.InV2(t, header, w.Challenge(t, ask))
	var wg sync.WaitGroup
	answers := make([]apptest.Answer, 6)
	for i := range answers {
		wg.Go(func() {
			if i%2 == 0 {
				answers[i] = w.Send(t, ask.V1(header), "")
			} else {
				answers[i] = w.Send(t, ask, twin)
			}
		})
	}
	wg.Wait()
	for _, a := range answers {
		if a.Status != http.StatusOK && a.Code() != "in_progress" || a.Call() != answers[0].Call() {
			t.Errorf("%d, call %s: %s", a.Status, a.Call(), a.Body)
		}
	}
	if got := w.Balance(t, w.Treasury); got != apptest.PriceUnits || s.Asked() != 1 {
		t.Errorf("the treasury holds %d after one payment, and the service was asked %d times", got, s.Asked())
	}
}

// A service that fails gives the money back to whoever paid in v1 too, and its answer says so to a v1 client.
func TestV1_AFailureIsRefunded(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "elderly", apptest.Fails, nil)
	payer := w.Payer(t, apptest.PriceUnits)
	ask := apptest.Ask(s.URL)
	header := w.SignV1(t, payer, w.Send(t, ask, ""), nil)
	a := w.Send(t, ask.V1(header), "")
	expect(t, "the call", a, http.StatusBadGateway, "upstream_5xx")
	wantReceipt(t, "the call", a, payment.V1, payer)
	w.AwaitRefund(t, a.Call())
	if got := w.Balance(t, payer.Address()); got != apptest.PriceUnits {
		t.Errorf("the payer holds %d", got)
	}
	again := w.Send(t, ask.V1(header), "")
	expect(t, "the same payment again", again, http.StatusBadGateway, "upstream_5xx")
	wantReceipt(t, "the same payment again", again, payment.V1, payer)
	if again.Refund("state") != "confirmed" {
		t.Errorf("the refund is %q", again.Refund("state"))
	}
}

// B14, B15, B22: what does not pay is told so as a v1 client reads it, in the words of v1, and costs nothing.
func TestV1_WhatDoesNotPayIsToldSoInItsWords(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "strict", apptest.Works, nil)
	payer, poor := w.Payer(t, 100*apptest.PriceUnits), w.Payer(t, apptest.PriceUnits-1)
	ask := apptest.Ask(s.URL)
	challenge := w.Send(t, ask, "")
	sign := func(change func(*chain.Authorization, map[string]any)) string {
		return w.SignV1(t, payer, challenge, change)
	}
	for name, tt := range map[string]struct{ header, code, word string }{
		"more than the price":        {sign(func(a *chain.Authorization, _ map[string]any) { a.Value = money.FromUnits(2001) }), "payment_mismatch", "invalid_exact_evm_payload_authorization_value"},
		"less than the price":        {sign(func(a *chain.Authorization, _ map[string]any) { a.Value = money.FromUnits(1999) }), "payment_mismatch", "invalid_exact_evm_payload_authorization_value"},
		"somebody else's address":    {sign(func(a *chain.Authorization, _ map[string]any) { a.To = payer.Address() }), "payment_mismatch", "invalid_exact_evm_payload_recipient_mismatch"},
		"a network that is not ours": {sign(func(_ *chain.Authorization, e map[string]any) { e["network"] = "base" }), "payment_mismatch", "invalid_network"},
		"another scheme":             {sign(func(_ *chain.Authorization, e map[string]any) { e["scheme"] = "upto" }), "payment_mismatch", "unsupported_scheme"},
		"an end in a moment":         {sign(func(a *chain.Authorization, _ map[string]any) { a.ValidBefore -= 110 }), "payment_invalid", "invalid_exact_evm_payload_authorization_valid_before"},
		"an end in a year":           {sign(func(a *chain.Authorization, _ map[string]any) { a.ValidBefore += 31_536_000 }), "payment_invalid", "invalid_exact_evm_payload_authorization_valid_before"},
		"a start that is to come":    {sign(func(a *chain.Authorization, _ map[string]any) { a.ValidAfter += 660 }), "payment_invalid", "invalid_exact_evm_payload_authorization_valid_after"},
		"a payer changed afterwards": {apptest.Rewritten(t, sign(nil), func(p map[string]any) {
			p["payload"].(map[string]any)["authorization"].(map[string]any)["from"] = poor.Address().Hex() //nolint:forcetypeassert // our own
		}), "payment_invalid", "invalid_exact_evm_payload_signature"},
	} {
		a := w.Send(t, ask.V1(tt.header), "")
		expect(t, name, a, http.StatusPaymentRequired, tt.code)
		if a.JSON["error"] != tt.word || a.JSON["x402Version"] != 1.0 || first(a.JSON["accepts"])["maxAmountRequired"] != "2000" {
			t.Errorf("%s: a v1 client reads %v, %v, %v", name, a.JSON["error"], a.JSON["x402Version"], a.JSON["accepts"])
		}
	}
	untouched(t, w, s)
	broke := w.Send(t, ask.V1(w.SignV1(t, poor, challenge, nil)), "")
	expect(t, "a payer without the means", broke, http.StatusPaymentRequired, "payer_unfunded")
	if broke.JSON["error"] != "insufficient_funds" || s.Asked() != 0 {
		t.Errorf("a payer without the means reads %v, and the service was asked %d times", broke.JSON["error"], s.Asked())
	}
}

// An old price holds for payments of v1 as it does for those of v2.
func TestV1_AnOldPriceIsAcceptableForTheQuoteValidity(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "elderprice", apptest.Works, nil)
	payer := w.Payer(t, 100*apptest.PriceUnits)
	old := w.Send(t, apptest.Ask(s.URL), "")
	_, service := w.Admin(t, http.MethodGet, "/api/v1/services/elderprice", nil)
	endpoint, _ := first(service["endpoints"])["id"].(string)
	if status, changed := w.Admin(t, http.MethodPatch, "/api/v1/services/elderprice/endpoints/"+endpoint, map[string]any{"price_usd": "0.003"}); status != http.StatusOK {
		t.Fatalf("change the price: %d %v", status, changed)
	}
	for name, terms := range map[string]apptest.Answer{"the old price": old, "the new price": w.Send(t, apptest.Ask(s.URL), "")} {
		if a := w.Send(t, apptest.Ask(s.URL).V1(w.SignV1(t, payer, terms, nil)), ""); a.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if got := w.Balance(t, w.Treasury); got != 5000 {
		t.Errorf("the treasury holds %d, want both prices", got)
	}
}
