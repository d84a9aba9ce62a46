package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/chain"
)

// callerOf is the client of a payer, who calls from a network of its own.
func callerOf(payer chain.Key) *http.Client {
	a := payer.Address()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, a[0]|1, a[1], 1)}}
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DialContext: dialer.DialContext}}
}

// A wave is so many paid calls at once, of payers in turn, each with another number as its input.
type wave struct {
	service *apptest.Service
	payers  []chain.Key
	calls   int
}

// send makes the calls of waves, all at once so that they share blocks.
func send(t *testing.T, w *apptest.World, waves ...wave) {
	t.Helper()
	var wg sync.WaitGroup
	callers := map[chain.Key]*http.Client{} // each payer is in a network of its own
	for _, v := range waves {
		for _, payer := range v.payers {
			if callers[payer] == nil {
				callers[payer] = callerOf(payer)
			}
		}
		terms := w.Challenge(t, apptest.Ask(v.service.URL))
		for n := range v.calls {
			payer := v.payers[n%len(v.payers)]
			header, caller := w.Sign(t, payer, terms), callers[payer]
			wg.Go(func() {
				ask := apptest.Ask(v.service.URL).With(fmt.Sprintf(`{"n":%d}`, n))
				if a := w.SendBy(t, caller, ask, header); a.Outcome() == "" {
					t.Errorf("call %d of %s: %d %s", n, v.service.Slug, a.Status, a.Body)
				}
			})
		}
	}
	wg.Wait()
}

// servesThirds serves every third number, and refuses the others with a 4xx of the service's own.
func servesThirds(rw http.ResponseWriter, r *http.Request) {
	var input struct{ N int }
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &input); err != nil || input.N%3 != 1 {
		http.Error(rw, "not that number", http.StatusUnprocessableEntity)
		return
	}
	apptest.Works(rw, r)
}

// What refuses or throttles most of what its listing says that it takes, to several payers, is no failure that counts. It is taken off the shelf until
// an admin has looked at it, its callers have their money back, and its provider reads why.
func TestHolding_AServiceThatRefusesMostValidInputIsHeldAndNotStruck(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	rejects := w.List(t, "rejects", servesThirds, nil)
	const throttled, first = 12, 19
	var arrived sync.WaitGroup
	arrived.Add(first)
	var places sync.Mutex
	place := 0
	throttles := w.List(t, "throttles", func(rw http.ResponseWriter, r *http.Request) {
		places.Lock()
		place++
		nth := place
		places.Unlock()
		if nth <= first { // the service rests after the first answer, so that all have to be asked before it
			arrived.Done()
			arrived.Wait()
		}
		if nth > throttled && nth <= first {
			apptest.Works(rw, r)
			return
		}
		http.Error(rw, "slow down", http.StatusTooManyRequests)
	}, map[string]any{"timeout_ms": 60_000})
	payers := make([]chain.Key, 3)
	for i := range payers {
		payers[i] = w.Payer(t, 30*apptest.PriceUnits)
	}

	send(t, w, wave{rejects, payers[:2], 20}, wave{throttles, payers, first})
	look := func(slug, want string) map[string]any {
		t.Helper()
		if err := w.App.HoldOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, view := w.Admin(t, http.MethodGet, "/api/v1/services/"+slug, nil)
		if view["state"] != want {
			t.Fatalf("%s is %v: %v, want %s", slug, view["state"], view["state_reason"], want)
		}
		return view
	}
	look("rejects", "listed")   // 13 of 20 rejected, to two payers
	look("throttles", "listed") // 12 of 19 throttled, to three

	w.Shift(t, 61*time.Second)
	apptest.Eventually(t, "the service that throttled is for sale again", func() bool {
		return w.Send(t, apptest.Ask(throttles.URL), "").Status == http.StatusPaymentRequired
	})
	send(t, w, wave{rejects, payers[2:], 1}, wave{throttles, payers[:1], 1})
	for slug, want := range map[string]string{
		"rejects":   "of 21 paid calls within 24 h, all with input that fits its listing, it rejected 14 with a 4xx, to 3 payers in 3 networks: over half",
		"throttles": "of 20 paid calls within 24 h it throttled 13 (429) and answered 0 with more than its listing allows, to 3 payers in 3 networks: over half",
	} {
		if view := look(slug, "held"); view["state_reason"] != want || view["state_by"] != "system" || view["state_cause"] != "review" {
			t.Errorf("the owner of %s reads %v by %v: %v, want %q", slug, view["state_cause"], view["state_by"], view["state_reason"], want)
		}
		if open := w.OpenStrikes(t, slug); len(open) != 0 {
			t.Errorf("%s has strikes %v", slug, open)
		}
	}
	wantHeld(t, w, rejects)
	wantFiguresOf(t, w, "rejects", 14, 7)

	// 7 of each were served.
	apptest.Eventually(t, "everything else is refunded", func() bool {
		left := uint64(0)
		for _, payer := range payers {
			left += w.Balance(t, payer.Address())
		}
		return left == (90-14)*apptest.PriceUnits
	})
	// An admin puts it back, and it is not held again for what the admin has seen.
	if status, view := w.Admin(t, http.MethodPost, "/api/v1/admin/services/rejects/relist", map[string]any{"reason": "its listing was mended"}); status != http.StatusOK {
		t.Fatalf("relist: %d %v", status, view)
	}
	look("rejects", "listed")
	expect(t, "after all", w.Pay(t, payers[0], w.Challenge(t, apptest.Ask(rejects.URL)), apptest.Ask(rejects.URL)), http.StatusOK, "")
}

// wantHeld says what a caller of a held service is told: to come back, and not why.
func wantHeld(t *testing.T, w *apptest.World, s *apptest.Service) {
	t.Helper()
	apptest.Eventually(t, "nobody is asked to pay for it", func() bool { return w.Send(t, apptest.Ask(s.URL), "").Status == http.StatusServiceUnavailable })
	a := w.Send(t, apptest.Ask(s.URL), "")
	expect(t, "unpaid", a, http.StatusServiceUnavailable, "not_listed")
	if a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.Body), "held for a review by the operator") || strings.Contains(string(a.Body), "paid calls") {
		t.Errorf("a caller is told %s, and to come back in %q s", a.Body, a.Header.Get("Retry-After"))
	}
}

// wantFiguresOf compares what was measured of paid calls from outside, which is shown beside what is enforced.
func wantFiguresOf(t *testing.T, w *apptest.World, slug string, rejected, served float64) {
	t.Helper()
	var figures, measured map[string]any
	apptest.Eventually(t, "the figures are read", func() bool { // who looks waits for a reading, and not for long
		_, figures = w.Admin(t, http.MethodGet, "/api/v1/services/"+slug+"/figures", nil)
		measured, _ = figures["measured"].(map[string]any)
		return measured["as_of"] != nil
	})
	enforced, _ := figures["enforced"].(map[string]any)
	day, _ := measured["24h"].(map[string]any)
	for _, of := range []map[string]any{first(day["traffic"]), first(first(day["endpoints"])["traffic"])} {
		counts, _ := of["counts"].([]any)
		latency, _ := of["served"].(map[string]any)
		if len(counts) != 2 || fmt.Sprint(counts) != fmt.Sprintf("[map[n:%v outcome:refused party:caller reason:rejected_by_service] map[n:%v outcome:served party:service reason:ok]]", rejected, served) ||
			of["origin"] != "counting" || of["trial"] != false || latency["n"] != served || latency["p50_ms"] == nil {
			t.Errorf("measured %v", of)
		}
	}
	if enforced["open"] != 0.0 || enforced["limit"] != 3.0 {
		t.Errorf("enforced %v", enforced)
	}
	if a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/" + slug + "/figures"}, ""); a.Status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", a.Status, a.Body)
	}
}
