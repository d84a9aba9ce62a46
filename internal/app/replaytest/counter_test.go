package replaytest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
)

func counterIncidents() []incident {
	const title = "A strike counter that fed itself"
	return []incident{
		{title, "calls meet the cooldown of a healthy service", "each was refunded and counted as another failure of the service, which was never asked; three of them took it off the shelf",
			"twenty of them are refunded in full and count nothing: one strike, of the one failure", cooldownRefusals},
		{title, "a trial call succeeds after trial calls failed", "the success did not clear what failures had counted: the reset stood in another place",
			"a success clears the strikes, whatever kind of call it was", trialSuccess},
	}
}

// cooldownRefusals: a call that our own cooldown refuses is no evidence against the service, however many there are.
func cooldownRefusals(t *testing.T) string {
	w := apptest.Start(t)
	s := w.List(t, "incident", apptest.Fails, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	const calls = 20
	payer := w.Payer(t, (calls+2)*apptest.PriceUnits)

	expect(t, "the one real failure", w.Pay(t, payer, terms, ask), http.StatusBadGateway, "upstream_5xx")
	s.Do(apptest.Works)
	var (
		wg  sync.WaitGroup
		ids [calls]string
	)
	for i := range calls {
		wg.Go(func() {
			a := w.Pay(t, payer, terms, ask)
			expect(t, "a call within the cooldown", a, http.StatusServiceUnavailable, "in_cooldown")
			ids[i] = a.Call()
		})
	}
	wg.Wait()
	if s.Asked() != 1 {
		t.Errorf("the service was asked %d times, want once", s.Asked())
	}
	open := w.OpenStrikes(t, s.Slug)
	if len(open) != 1 || open[0].Deliveries != 1 {
		t.Errorf("open strikes %v, want one with one delivery", open)
	}
	transactions := map[string]bool{}
	for _, id := range ids {
		transactions[w.AwaitRefund(t, id)] = true
		if r := w.Record(t, id); r.JSON["outcome"] != "cooldown_refused" || r.JSON["party"] != "platform" || r.JSON["asked"] != false {
			t.Errorf("call %s is recorded as %v · %v, asked %v", id, r.JSON["outcome"], r.JSON["party"], r.JSON["asked"])
		}
	}
	if len(transactions) != calls {
		t.Errorf("%d refund transactions for %d calls", len(transactions), calls)
	}
	apptest.Eventually(t, "every payment is back in full", func() bool {
		return w.Balance(t, payer.Address()) == (calls+2)*apptest.PriceUnits && w.Balance(t, w.Treasury) == 0
	})
	w.Shift(t, 61*time.Second)
	expect(t, "the call after the cooldown", w.Pay(t, payer, terms, ask), http.StatusOK, "")
	if left := w.OpenStrikes(t, s.Slug); len(left) != 0 {
		t.Errorf("open strikes after a success: %v", left)
	}
	return fmt.Sprintf("%d refused in the cooldown, %d refunded, %d strike", calls, len(transactions), len(open))
}

func trialSuccess(t *testing.T) string {
	w := apptest.Start(t)
	s := w.List(t, "trials", apptest.Fails, map[string]any{"trial_calls_per_day": 10})
	trial := apptest.Ask(s.URL).Trial()
	for n := 1; n <= 2; n++ {
		expect(t, "a trial that fails", w.Send(t, trial, ""), http.StatusBadGateway, "upstream_5xx")
		if open := w.OpenStrikes(t, s.Slug); len(open) != n {
			t.Fatalf("%d open strikes after %d failures, each after the last cooldown", len(open), n)
		}
		expect(t, "a trial within the cooldown", w.Send(t, trial, ""), http.StatusServiceUnavailable, "in_cooldown")
		w.Shift(t, 61*time.Second)
	}
	s.Do(apptest.Works)
	if a := w.Send(t, trial, ""); a.Status != http.StatusOK || a.Outcome() != "served" {
		t.Fatalf("the trial after the cooldown: %d %s", a.Status, a.Body)
	}
	open := w.OpenStrikes(t, s.Slug)
	if len(open) != 0 {
		t.Errorf("open strikes after a trial success: %v", open)
	}
	return fmt.Sprintf("2 strikes by trials, %d after a trial that was served", len(open))
}

// expect checks the status of an answer, and its code where there is one.
func expect(t *testing.T, what string, a apptest.Answer, status int, code string) {
	t.Helper()
	if a.Status != status || code != "" && a.Code() != code {
		t.Errorf("%s: %d %s, want %d %s", what, a.Status, a.Body, status, code)
	}
}
