package app_test

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
	"market/internal/notify"
)

// Who a caller is decides whether its failures are evidence. It is who our own side of the connection says, not who the request says.
func TestOrigins_OnlyOutsideTrafficIsEvidence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env            []string
		header         http.Header
		origin, source string
		strikes        int
	}{
		"in development loopback is a caller like any other": {nil, nil, "external", "127.0.0.1", 1},
		"our own addresses move nothing":                     {[]string{"MARKET_OWN_SOURCES=127.0.0.0/8"}, nil, "own", "127.0.0.1", 0},
		"a peer that forwards and is no proxy counts, and is not believed": {[]string{"MARKET_OWN_SOURCES=198.51.100.0/24"},
			http.Header{"X-Forwarded-For": {"198.51.100.7"}}, "unattributed", "127.0.0.1", 1},
		"even one of our own addresses that forwards": {[]string{"MARKET_OWN_SOURCES=127.0.0.0/8"},
			http.Header{"Forwarded": {"for=198.51.100.7"}}, "unattributed", "127.0.0.1", 1},
		"behind a proxy of ours the forwarded address is the caller": {[]string{"MARKET_TRUSTED_PROXIES=127.0.0.0/8"},
			http.Header{"X-Forwarded-For": {"192.0.2.1, 198.51.100.7"}}, "external", "198.51.100.7", 1},
		"behind a proxy of ours our own scanner is our own": {[]string{"MARKET_TRUSTED_PROXIES=127.0.0.0/8", "MARKET_OWN_SOURCES=198.51.100.0/24"},
			http.Header{"X-Forwarded-For": {"198.51.100.7"}}, "own", "198.51.100.7", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.Start(t, tt.env...)
			s := w.List(t, "origin", apptest.Fails, map[string]any{"trial_calls_per_day": 10})
			payer := w.Payer(t, 2*apptest.PriceUnits)
			paid, trial := apptest.Ask(s.URL), apptest.Ask(s.URL).Trial()
			paid.Header, trial.Header = tt.header, tt.header
			// Two failures of our own traffic; of other traffic the second is refused in the cooldown that the first began.
			second, code := http.StatusBadGateway, "upstream_5xx"
			if tt.strikes > 0 {
				second, code = http.StatusServiceUnavailable, "in_cooldown"
			}
			a := w.Pay(t, payer, w.Challenge(t, paid), paid)
			expect(t, "a failure", a, http.StatusBadGateway, "upstream_5xx")
			b := w.Send(t, trial, "")
			expect(t, "a trial after it", b, second, code)
			for what, answer := range map[string]apptest.Answer{"paid": a, "trial": b} {
				if d := w.Delivery(t, answer.Call()); d.Origin != tt.origin || d.Source != tt.source {
					t.Errorf("%s: recorded as %s from %s, want %s from %s", what, d.Origin, d.Source, tt.origin, tt.source)
				}
			}
			if open := w.OpenStrikes(t, s.Slug); len(open) != tt.strikes {
				t.Errorf("open strikes %v, want %d", open, tt.strikes)
			}
			if rest := w.Rest(t, s.Slug); (rest > 0) != (tt.strikes > 0) {
				t.Errorf("it rests for %s", rest)
			}
			if w.AwaitRefund(t, a.Call()) == "" {
				t.Error("a failure is refunded wherever the call came from")
			}
			w.App.LookAtTraffic(t.Context())
			open, err := notify.Store{}.Open(t.Context(), w.DB, notify.UnattributedTraffic)
			if err != nil || len(open) != 0 { // a header costs nothing: what one caller sends is no news
				t.Errorf("notices of unattributed traffic: %+v (%v)", open, err)
			}
		})
	}
}

// A provider that calls its own service can neither clear its strikes nor get one: who calls from where the service answers is its provider.
// It is known from our own probes, so it holds for the first call after a start as well.
func TestOrigins_AProvidersOwnCallsMoveNothing(t *testing.T) {
	t.Parallel()
	const home = "127.0.0.61"
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.1/32")
	s := w.ListAt(t, home, "athome", apptest.Fails, map[string]any{"trial_calls_per_day": 20})
	from := func(w *apptest.World, address string) apptest.Asking {
		a := w.At(t, apptest.Ask(s.URL))
		a.Header = http.Header{"X-Forwarded-For": {address}}
		return a
	}
	fresh := w.Replica(t)
	terms := w.Challenge(t, from(w, "192.0.2.1"))
	payer := w.Payer(t, 10*apptest.PriceUnits)
	origin := func(what string, a apptest.Answer, want string, strikes int) {
		t.Helper()
		if d := w.Delivery(t, a.Call()); d.Origin != want {
			t.Errorf("%s is recorded as %s from %s, want %s", what, d.Origin, d.Source, want)
		}
		if open := w.OpenStrikes(t, s.Slug); len(open) != strikes {
			t.Errorf("after %s there are %d open strikes, want %d", what, len(open), strikes)
		}
	}
	a := fresh.Send(t, from(fresh, home).Trial(), "")
	expect(t, "the provider's trial", a, http.StatusBadGateway, "upstream_5xx")
	origin("the provider's trial", a, "provider", 0)
	a = w.Pay(t, payer, terms, from(w, home))
	expect(t, "the provider's call", a, http.StatusBadGateway, "upstream_5xx")
	origin("the provider's call", a, "provider", 0)
	if rest := w.Rest(t, s.Slug); rest != 0 {
		t.Errorf("after its provider's failures it rests for %s", rest)
	}
	if w.AwaitRefund(t, a.Call()) == "" {
		t.Error("a provider that pays for a failure is refunded like anybody")
	}

	// Its neighbour is somebody: what counts is the address, not the network that it is in.
	a = w.Pay(t, payer, terms, from(w, "127.0.0.62"))
	expect(t, "a neighbour's call", a, http.StatusBadGateway, "upstream_5xx")
	origin("a neighbour's call", a, "external", 1)
	w.Shift(t, restOver)
	s.Do(apptest.Works)
	a = w.Pay(t, payer, terms, from(w, home))
	if a.Status != http.StatusOK {
		t.Fatalf("the provider's call: %d %s", a.Status, a.Body)
	}
	origin("the provider's success", a, "provider", 1)
	// A stranger's word is not believed, whatever it says.
	stranger := w.ReplicaWith(t, nil, "MARKET_TRUSTED_PROXIES=10.0.0.0/8")
	a = stranger.Pay(t, payer, terms, from(stranger, home))
	if a.Status != http.StatusOK {
		t.Fatalf("a stranger's call: %d %s", a.Status, a.Body)
	}
	origin("a stranger's success", a, "unattributed", 0)
}

// A success of our own proves nothing either.
func TestOrigins_OurOwnSuccessClearsNothing(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8", "MARKET_OWN_SOURCES=198.51.100.0/24")
	s := w.List(t, "flattered", apptest.Fails, map[string]any{"trial_calls_per_day": 10})
	outside, own := apptest.Ask(s.URL).Trial(), apptest.Ask(s.URL).Trial()
	outside.Header = http.Header{"X-Forwarded-For": {"192.0.2.1"}}
	own.Header = http.Header{"X-Forwarded-For": {"198.51.100.7"}}
	expect(t, "a failure", w.Send(t, outside, ""), http.StatusBadGateway, "upstream_5xx")
	w.Shift(t, restOver)
	s.Do(apptest.Works)
	if a := w.Send(t, own, ""); a.Status != http.StatusOK || a.Outcome() != "served" {
		t.Fatalf("our own call: %d %s", a.Status, a.Body)
	}
	if open := w.OpenStrikes(t, s.Slug); len(open) != 1 {
		t.Errorf("open strikes after our own success: %v, want the one", open)
	}
	if a := w.Send(t, outside, ""); a.Status != http.StatusOK {
		t.Fatalf("somebody's call: %d %s", a.Status, a.Body)
	}
	if open := w.OpenStrikes(t, s.Slug); len(open) != 0 {
		t.Errorf("open strikes after somebody's success: %v", open)
	}
}
