package app_test

import (
	"net/http"
	"strings"
	"testing"

	"market/internal/app/apptest"
)

// person looks at an address with a browser.
func person(t *testing.T, w *apptest.World, method, path string) apptest.Answer {
	t.Helper()
	return w.Send(t, apptest.Asking{Method: method, URL: w.URL + path, Header: http.Header{"Accept": {"text/html"}, "User-Agent": {"Mozilla/5.0"}}}, "")
}

func TestPages_SayWhatCanBeBought(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_PROBE_TTL=10m")
	s := w.List(t, "mute", apptest.Works, nil)
	has := func(what, path string, status int, texts ...string) {
		t.Helper()
		a := person(t, w, http.MethodGet, path)
		if a.Status != status {
			t.Errorf("%s: %d, want %d", what, a.Status, status)
		}
		for _, text := range texts {
			if !strings.Contains(string(a.Body), text) {
				t.Errorf("%s: no %q in\n%s", what, text, a.Body)
			}
		}
	}
	has("a service that nobody has called", "/", http.StatusOK, ">for sale<", "no paid calls yet", "as of")
	has("a network that is none of ours", "/?network=eip155:8453", http.StatusBadRequest, `id="network-error"`, "is none that calls are paid on here: eip155:84532")
	has("a page in the middle", "/?sort=created&cursor=czI6Y3JlYXRlZDowOjAwMDAwMDAwLTAwMDAtMDAwMC0wMDAwLTAwMDAwMDAwMDAwMA", http.StatusOK,
		`/api/v1/services?cursor=czI6Y3JlYXRlZDowOjAwMDAwMDAwLTAwMDAtMDAwMC0wMDAwLTAwMDAwMDAwMDAwMA&amp;sort=created`)
	for _, path := range []string{"/", "/services/mute", "/calls", "/rules"} {
		if a := person(t, w, http.MethodHead, path); a.Status != http.StatusOK || len(a.Body) != 0 {
			t.Errorf("HEAD %s: %d with %d bytes", path, a.Status, len(a.Body))
		}
	}

	s.SetLive(false)
	payer := w.Payer(t, apptest.PriceUnits)
	expect(t, "a call of a service that is away", w.Pay(t, payer, w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL)), http.StatusServiceUnavailable, "not_live")
	has("a service that is away", "/", http.StatusOK, ">does not answer<")
	has("its own page", "/services/mute", http.StatusOK, ">does not answer<", "It is looked at again before a payment is taken")

	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/services/mute/suspend", map[string]any{"reason": "for the test"}); status != http.StatusOK {
		t.Fatalf("suspend: %d %v", status, answer)
	}
	has("a shelf with nothing for sale", "/", http.StatusOK, "There is no service yet.")
}
