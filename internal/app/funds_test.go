package app_test

import (
	"net/http"
	"sync"
	"testing"

	"market/internal/app/apptest"
)

// payMany pays with so many payments of one payer at once, and counts the answers by status.
func payMany(t *testing.T, w *apptest.World, units uint64, many int) map[int]int {
	t.Helper()
	s := w.List(t, "busy", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms, payer := w.Challenge(t, ask), w.Payer(t, units)
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		statuses = map[int]int{}
		start    = make(chan struct{})
	)
	for range many {
		header := w.Sign(t, payer, terms)
		wg.Go(func() {
			<-start
			a := w.Send(t, ask, header)
			mu.Lock()
			defer mu.Unlock()
			if statuses[a.Status]++; a.Status != http.StatusOK && a.JSON["code"] != "payer_unfunded" {
				t.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	close(start)
	wg.Wait()
	return statuses
}

// Money for one call pays for one call, and the others cost no transaction, however many come at once.
func TestFunds_MoneyForOneBuysOneTransaction(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	got := payMany(t, w, apptest.PriceUnits, 40)
	if got[http.StatusOK] != 1 || w.Sent(t) != 1 || w.Count(t, "rejected") != 0 {
		t.Errorf("answers %v, %d transactions, %d rejected", got, w.Sent(t), w.Count(t, "rejected"))
	}
	wantMoved(t, w, 1, 0)
}

// A payer that holds just enough for all that it sends at once is served all.
func TestFunds_EnoughForAllIsEnough(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	const many = 50
	if got := payMany(t, w, many*apptest.PriceUnits, many); got[http.StatusOK] != many {
		t.Errorf("answers %v", got)
	}
	wantMoved(t, w, many, 0)
}
