package app_test

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
	"market/internal/payment"
)

// What a client brings back of our extensions is what we said: the whole challenge, as stock clients echo it, pays, and one that was altered does not.
func TestEcho_OfTheWholeChallengePaysAndAnAlteredOneDoesNot(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "echoed", apptest.Works, map[string]any{"description": "Погода 🌦"})
	ask := apptest.Ask(s.URL)
	payer := w.Payer(t, 100*apptest.PriceUnits)
	challenge := w.Send(t, ask, "")
	required := w.Challenge(t, ask)
	pay := func(change func(extensions map[string]any)) apptest.Answer {
		said, _ := apptest.Decode(t, challenge.Header.Get(payment.HeaderRequired))["extensions"].(map[string]any)
		change(said)
		return w.Send(t, ask, apptest.Rewritten(t, w.Sign(t, payer, required), func(p map[string]any) { p["extensions"] = said }))
	}
	member := func(of any, names ...string) map[string]any {
		for _, name := range names {
			object, _ := of.(map[string]any)
			of = object[name]
		}
		object, _ := of.(map[string]any)
		return object
	}
	for name, change := range map[string]func(map[string]any){
		"method":     func(e map[string]any) { member(e, "bazaar", "info", "input")["method"] = "GET" },
		"input":      func(e map[string]any) { member(e, "bazaar", "info")["input"] = "x" },
		"info":       func(e map[string]any) { delete(member(e, "bazaar"), "info") },
		"identifier": func(e map[string]any) { member(e, "payment-identifier", "info")["required"] = true },
	} {
		a := pay(change)
		expect(t, "another "+name, a, http.StatusPaymentRequired, "payment_mismatch")
		if got := apptest.Decode(t, a.Header.Get(payment.HeaderRequired))["error"]; got != "extension_echo_mismatch" {
			t.Errorf("another %s: x402's word is %v", name, got)
		}
	}
	untouched(t, w, s)
	for name, change := range map[string]func(map[string]any){
		"as it was said": func(map[string]any) {},
		"with more":      func(e map[string]any) { member(e, "bazaar", "info", "input")["note"] = "mine"; e["other"] = 7 },
		"an example of before": func(e map[string]any) { // an edit
			delete(member(e, "bazaar", "info"), "output")
			member(e, "bazaar", "info", "input")["body"] = map[string]any{"n": "another"}
		},
		"without offers": func(e map[string]any) { delete(member(e, "offer-receipt", "info"), "offers") },
		"with less":      func(e map[string]any) { delete(e, "bazaar") },
	} {
		if a := pay(change); a.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
}
