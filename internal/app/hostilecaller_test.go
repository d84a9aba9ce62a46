package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/chain"
)

// poison is an input that the listing takes and that the service breaks at.
const poison = `{"n":666}`

// breaksAtPoison works for everybody else.
func breaksAtPoison(rw http.ResponseWriter, r *http.Request) {
	if body, err := io.ReadAll(r.Body); err == nil && string(body) == poison {
		apptest.Fails(rw, r)
		return
	}
	apptest.Works(rw, r)
}

// callsFrom returns an asking that comes from an address.
func callsFrom(s *apptest.Service, address, body string) apptest.Asking {
	a := apptest.Ask(s.URL).With(body)
	a.Header = http.Header{"X-Forwarded-For": {address}}
	return a
}

// queueOf returns what an admin sees of a service's strikes, and which service is to be looked at first.
func queueOf(t *testing.T, w *apptest.World, s *apptest.Service) (summary, sources map[string]any, first string) {
	t.Helper()
	_, one := w.Admin(t, http.MethodGet, "/api/v1/admin/strikes/"+s.Slug, nil)
	summary, _ = one["summary"].(map[string]any)
	sources, _ = summary["sources"].(map[string]any)
	_, queue := w.Admin(t, http.MethodGet, "/api/v1/admin/strikes", nil)
	if services, _ := queue["services"].([]any); len(services) > 0 {
		head, _ := services[0].(map[string]any)
		first, _ = head["service"].(string)
	}
	return summary, sources, first
}

func stateOf(t *testing.T, w *apptest.World, s *apptest.Service) any {
	t.Helper()
	return w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/" + s.Slug}, "").JSON["state"]
}

// A caller that knows how to break a healthy service can pay for that five times: it is refunded, and then refused, and every strike that it brings
// about is seen to come from it alone. Other people's calls go well in between, and clear them.
func TestHostileCaller_IsStoppedAtItsFifthRefundAndSeenToBeAlone(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8", "MARKET_REFUND_LIMIT=5/10m")
	s, flaky := w.List(t, "poisoned", breaksAtPoison, map[string]any{"trial_calls_per_day": 100}), w.List(t, "flaky", apptest.Fails, nil)
	const villain, friend = "198.51.100.66", "192.0.2.10"
	attack, honest := callsFrom(s, villain, poison), callsFrom(s, friend, `{"n":1}`)
	terms := w.Challenge(t, honest)
	payer := w.Payer(t, 20*apptest.PriceUnits)
	goesWell := func() {
		t.Helper()
		if a := w.Send(t, honest.Trial(), ""); a.Status != http.StatusOK {
			t.Fatalf("somebody else's call: %d %s", a.Status, a.Body)
		}
		if open := w.OpenStrikes(t, s.Slug); len(open) != 0 {
			t.Fatalf("after a call that went well %d strikes are open", len(open))
		}
	}
	// Another service is nearer to its end, by failures that several networks met.
	flakyTerms := w.Challenge(t, callsFrom(flaky, "192.0.2.99", `{"n":1}`)) // before it rests: when the rest is over, an unpaid request may hear of it a moment later
	for _, from := range []string{"203.0.113.1", "192.0.2.77"} {
		a := callsFrom(flaky, from, `{"n":1}`)
		expect(t, "a failure that anybody meets", w.Pay(t, w.Payer(t, apptest.PriceUnits), flakyTerms, a), http.StatusBadGateway, "upstream_5xx")
		w.Shift(t, restOver)
	}

	var refunded []string
	for n := 1; n <= 5; n++ {
		a := w.Pay(t, payer, terms, attack)
		expect(t, "the poison", a, http.StatusBadGateway, "upstream_5xx")
		refunded = append(refunded, a.Call())
		// At once again it meets the cooldown; after the fifth it is stopped even there.
		switch n {
		case 1:
			expect(t, "the poison in the cooldown", w.Pay(t, payer, terms, attack), http.StatusServiceUnavailable, "in_cooldown")
		case 5:
			expect(t, "the poison in the last cooldown", w.Pay(t, payer, terms, attack), http.StatusTooManyRequests, "refund_limit")
		}
		if open := w.OpenStrikes(t, s.Slug); len(open) != 1 || open[0].Deliveries != 1 {
			t.Fatalf("after %d attacks the open strikes are %+v, want one", n, open)
		}
		summary, sources, first := queueOf(t, w, s)
		if summary["concentrated"] != true || summary["words"] != "1 of 1 from one address" || sources["networks"] != 1.0 || first != s.Slug {
			t.Errorf("after %d attacks the queue begins with %s and says %v of this one, from %v networks", n, first, summary["words"], sources["networks"])
		}
		w.Shift(t, restOver)
		goesWell()
	}
	asked := s.Asked()
	expect(t, "the sixth attack", w.Pay(t, payer, terms, attack), http.StatusTooManyRequests, "refund_limit")
	if s.Asked() != asked {
		t.Error("the service was asked by a payer that is stopped")
	}
	for _, id := range refunded {
		if w.AwaitRefund(t, id) == "" {
			t.Error("an attack was not refunded")
		}
	}

	// A fresh wallet begins afresh, and is seen to come from the same place.
	expect(t, "another wallet", w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, attack), http.StatusBadGateway, "upstream_5xx")
	w.Shift(t, restOver)
	expect(t, "one more wallet", w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, attack), http.StatusBadGateway, "upstream_5xx")
	summary, sources, first := queueOf(t, w, s)
	if words, _ := summary["words"].(string); summary["concentrated"] != true || !strings.HasPrefix(words, "2 of 2 from one address") ||
		sources["networks"] != 1.0 || sources["payers"] != 2.0 || first != s.Slug {
		t.Errorf("of two wallets at one address is said %q, of %v networks and %v payers; the queue begins with %s",
			words, sources["networks"], sources["payers"], first)
	}
	w.Shift(t, restOver)
	goesWell()

	// Trials cost nothing, and are no way around: the address is refused them as the wallet was refused its calls.
	for range 5 {
		expect(t, "the poison as a trial", w.Send(t, attack.Trial(), ""), http.StatusBadGateway, "upstream_5xx")
		w.Shift(t, restOver)
		goesWell()
	}
	asked = s.Asked()
	expect(t, "the sixth trial", w.Send(t, attack.Trial(), ""), http.StatusTooManyRequests, "refund_limit")
	if s.Asked() != asked {
		t.Error("the service was asked by a trial from an address that is stopped")
	}
	if a := w.Send(t, honest.Trial(), ""); a.Status != http.StatusOK {
		t.Errorf("somebody else's trial: %d %s", a.Status, a.Body)
	}
	if state := stateOf(t, w, s); state != "listed" {
		t.Errorf("after everything the service is %v", state)
	}
}

// Where nobody else calls, a lone caller can bring about three strikes. With two sources needed they delist nobody: a person looks first. Many wallets
// and the addresses of one network are one source.
func TestHostileCaller_DelistsNobodyWhereTwoSourcesAreNeeded(t *testing.T) {
	t.Parallel()
	for needed, want := range map[string]string{"1": "delisted", "2": "held"} {
		t.Run(needed+" needed", func(t *testing.T) {
			t.Parallel()
			w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8", "MARKET_REFUND_LIMIT=5/10m", "MARKET_STRIKE_SOURCES="+needed)
			s := w.List(t, "quiet", breaksAtPoison, nil)
			terms := w.Challenge(t, callsFrom(s, "198.51.100.66", poison))
			wallets := []chain.Key{w.Payer(t, apptest.PriceUnits), w.Payer(t, apptest.PriceUnits), w.Payer(t, apptest.PriceUnits)}
			for n, address := range []string{"198.51.100.66", "198.51.100.66", "198.51.100.7"} {
				if state := stateOf(t, w, s); state != "listed" {
					t.Fatalf("before attack %d the service is %v", n+1, state)
				}
				expect(t, "an attack", w.Pay(t, wallets[n], terms, callsFrom(s, address, poison)), http.StatusBadGateway, "upstream_5xx")
				w.Shift(t, restOver)
			}
			if state := stateOf(t, w, s); state != want {
				t.Errorf("three strikes of one network make the service %v, want %s", state, want)
			}
			summary, sources, _ := queueOf(t, w, s)
			if words, _ := summary["words"].(string); summary["concentrated"] != true || !strings.HasPrefix(words, "3 of 3 from one network") || sources["payers"] != 3.0 {
				t.Errorf("the queue says %q, of %v payers", words, sources["payers"])
			}
		})
	}
}
