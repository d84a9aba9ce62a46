package app_test

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
)

func expect(t *testing.T, what string, got apptest.Answer, status int, code string) {
	t.Helper()
	if got.Status != status || got.Code() != code {
		t.Errorf("%s: got %d %s, want %d %s; body %s", what, got.Status, got.Code(), status, code, got.Body)
	}
}

func TestPaidPath_ClassifiesThenProbesThenSettlesThenLooksAtTheCooldown(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "order", apptest.Works, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	rich, stranger := w.Payer(t, 100*apptest.PriceUnits), w.Payer(t, 0)
	// A payer that is known here, and that has nothing left.
	broke := w.Payer(t, apptest.PriceUnits)
	if a := w.Pay(t, broke, terms, apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Fatalf("the first call of the payer that will be broke: %d %s", a.Status, a.Body)
	}

	s.SetLive(false)
	bad := apptest.Ask(s.URL).With(`{"n":"not a number"}`)
	expect(t, "bad input on a dead service", w.Pay(t, rich, terms, bad), http.StatusUnprocessableEntity, "input_invalid")
	expect(t, "bad input on a dead service, and no funds", w.Pay(t, stranger, terms, bad), http.StatusUnprocessableEntity, "input_invalid")
	expect(t, "a dead service and a payer without funds", w.Pay(t, stranger, terms, apptest.Ask(s.URL)), http.StatusServiceUnavailable, "not_live")
	expect(t, "a dead service and a known payer without funds", w.Pay(t, broke, terms, apptest.Ask(s.URL)), http.StatusServiceUnavailable, "not_live")
	asked := s.Asked()

	// One failure, so that the service cools down from here on.
	s.SetLive(true)
	s.Do(apptest.Fails)
	expect(t, "the failure that starts the cooldown", w.Pay(t, rich, terms, apptest.Ask(s.URL)), http.StatusBadGateway, "upstream_5xx")
	s.Do(apptest.Works)

	expect(t, "a cooling-down service and a known payer without funds", w.Pay(t, broke, terms, apptest.Ask(s.URL)),
		http.StatusPaymentRequired, "settle_rejected")
	expect(t, "a cooling-down service and a stranger without funds", w.Pay(t, stranger, terms, apptest.Ask(s.URL)),
		http.StatusPaymentRequired, "payer_unfunded")
	cooled := w.Pay(t, rich, terms, apptest.Ask(s.URL))
	expect(t, "a cooling-down service and a good payment", cooled, http.StatusServiceUnavailable, "in_cooldown")
	if cooled.Outcome() != "cooldown_refused" || cooled.JSON["charged"] != false || cooled.Header.Get("Retry-After") == "" {
		t.Errorf("in cooldown: outcome %s, charged %v, Retry-After %q", cooled.Outcome(), cooled.JSON["charged"], cooled.Header.Get("Retry-After"))
	}
	if s.Asked() != asked+1 {
		t.Errorf("the service was asked %d times after its death, want once: the failure", s.Asked()-asked)
	}

	// The refund is a log on the chain: the wallet has all but what the failure and the cooldown call paid, and both come back.
	w.AwaitRefund(t, cooled.Call())
	apptest.Eventually(t, "everything that was not served is back", func() bool {
		return w.Balance(t, rich.Address()) == 100*apptest.PriceUnits
	})
}
