package app_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
)

func TestStrikes_TheThirdFailureAfterACooldownDelists(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "three", apptest.Fails, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, 10*apptest.PriceUnits)

	for n := 1; n <= 3; n++ {
		expect(t, "a failure", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusBadGateway, "upstream_5xx")
		if open := w.OpenStrikes(t, s.Slug); len(open) != n {
			t.Fatalf("%d open strikes after %d failures, each after the last cooldown", len(open), n)
		}
		state := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/" + s.Slug}, "").JSON["state"]
		if want := map[bool]string{true: "delisted", false: "listed"}[n == 3]; state != want {
			t.Fatalf("the service is %v after %d strikes, want %s", state, n, want)
		}
		w.Shift(t, 61*time.Second)
	}

	// One transaction: the delisting carries the time of the third strike's statement block, and its evidence is there.
	const sameMomentSQL = `
SELECT count(*) FROM services s JOIN strikes st ON st.service_id = s.id JOIN strike_deliveries sd ON sd.strike_id = st.id
  JOIN deliveries d ON d.id = sd.delivery_id
 WHERE s.slug = $1 AND s.xmin = st.xmin AND st.xmin = d.xmin AND s.state = 'delisted'`
	var together int
	if err := w.DB.QueryRow(t.Context(), sameMomentSQL, s.Slug).Scan(&together); err != nil || together != 1 {
		t.Errorf("%d strikes were written in the transaction that delisted, with their delivery: want the third (%v)", together, err)
	}

	apptest.Eventually(t, "the unpaid request is told that the service is gone", func() bool {
		return w.Send(t, apptest.Ask(s.URL), "").Status == http.StatusGone
	})
	expect(t, "an unpaid request", w.Send(t, apptest.Ask(s.URL), ""), http.StatusGone, "not_listed")
	expect(t, "a paid request", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusGone, "not_listed")
	apptest.Eventually(t, "all three failures are refunded", func() bool {
		return w.Balance(t, payer.Address()) == 10*apptest.PriceUnits
	})
}

// concurrentFailures makes so many calls that are all asked before the service fails the first of them.
func concurrentFailures(t *testing.T, w *apptest.World, slug string, calls int) *apptest.Service {
	t.Helper()
	var arrived sync.WaitGroup
	arrived.Add(calls)
	s := w.List(t, slug, func(rw http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait() // the barrier: nobody is answered before everybody has been asked
		apptest.Fails(rw, r)
	}, map[string]any{"timeout_ms": 60000})
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, uint64(calls)*apptest.PriceUnits) //nolint:gosec // a test's own number
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if a := w.Pay(t, payer, terms, apptest.Ask(s.URL)); a.Status != http.StatusBadGateway {
				t.Errorf("a call at the barrier: %d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	return s
}

func TestStrikes_AHundredConcurrentFailuresAreOneStrikeWithAHundredDeliveries(t *testing.T) {
	// Not beside other tests: a hundred settlements at once want the whole machine.
	w := apptest.Start(t)
	const calls = 100
	s := concurrentFailures(t, w, "hiccup", calls)
	if open := w.OpenStrikes(t, s.Slug); len(open) != 1 || open[0].Deliveries != calls {
		t.Errorf("open strikes %v, want one with %d deliveries", open, calls)
	}
}

func TestStrikes_WithoutFoldingEveryFailureCounts(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_STRIKE_FOLD=0", "MARKET_STRIKE_LIMIT=100")
	const calls = 10
	s := concurrentFailures(t, w, "literal", calls)
	if open := w.OpenStrikes(t, s.Slug); len(open) != calls {
		t.Errorf("%d open strikes, want the literal %d", len(open), calls)
	}
}
