package app_test

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
)

// B126: what its owner withdraws has left the shelf, and the list, with the next request.
//
// A client signs again on every 402, so what is not for sale is never offered: not even to a payment that is wrong.
func TestGone_NoTermsAreOfferedForWhatIsNotForSale(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "gone", apptest.Works, map[string]any{"trial_calls_per_day": 1})
	other := w.List(t, "there", apptest.Works, nil)
	payer := w.Payer(t, 10*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	good := w.Sign(t, payer, terms)
	if status, _ := w.Admin(t, http.MethodDelete, "/api/v1/services/gone", nil); status != http.StatusNoContent {
		t.Fatalf("retire: %d", status)
	}
	for name, a := range map[string]apptest.Answer{
		"unpaid":                  w.Send(t, apptest.Ask(s.URL), ""),
		"a trial":                 w.Send(t, apptest.Ask(s.URL).Trial(), ""),
		"a good payment":          w.Send(t, apptest.Ask(s.URL), good),
		"a payer without funds":   w.Pay(t, w.Payer(t, 0), terms, apptest.Ask(s.URL)),
		"a malformed payment":     w.Send(t, apptest.Ask(s.URL), "!!!"),
		"another service's terms": w.Pay(t, payer, w.Challenge(t, apptest.Ask(other.URL)), apptest.Ask(s.URL)),
		"another network": w.Send(t, apptest.Ask(s.URL), apptest.Rewritten(t, good, func(p map[string]any) {
			p["accepted"].(map[string]any)["network"] = "eip155:1" //nolint:forcetypeassert // our own terms
		})),
		"a wrong signature": w.Send(t, apptest.Ask(s.URL), apptest.Rewritten(t, good, func(p map[string]any) {
			p["payload"].(map[string]any)["authorization"].(map[string]any)["value"] = "1" //nolint:forcetypeassert // our own terms
		})),
	} {
		expect(t, name, a, http.StatusGone, "not_listed")
		if a.Header.Get("PAYMENT-REQUIRED") != "" || a.JSON["charged"] != false {
			t.Errorf("%s: terms %q, charged %v", name, a.Header.Get("PAYMENT-REQUIRED"), a.JSON["charged"])
		}
	}
	untouched(t, w, s)
	list := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services"}, "")
	if items, _ := list.JSON["items"].([]any); len(items) != 1 || first(list.JSON["items"])["slug"] != "there" {
		t.Errorf("the list is %s", list.Body)
	}
}
