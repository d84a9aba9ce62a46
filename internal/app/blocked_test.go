package app_test

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
)

// B121: a payer that the token will not pay is an item of its own, and holds up nobody else's refund.
func TestRefund_OneBlockedPayeeHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "blocked", apptest.Fails, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	blocked, other := w.Payer(t, apptest.PriceUnits), w.Payer(t, apptest.PriceUnits)

	w.Chain.Pause() // so that the refund cannot leave before its payee is blocked
	blockedAnswer := make(chan apptest.Answer, 1)
	go func() { blockedAnswer <- w.Pay(t, blocked, terms, apptest.Ask(s.URL)) }()
	apptest.Eventually(t, "the payment is claimed", func() bool { return w.Count(t, "settling") == 1 })
	w.Chain.Resume()
	first := <-blockedAnswer
	if err := w.Chain.SetBlocked(t.Context(), blocked.Address(), true); err != nil {
		t.Fatal(err)
	}
	expect(t, "the blocked payer's call", first, http.StatusBadGateway, "upstream_5xx")
	second := w.Pay(t, other, terms, apptest.Ask(s.URL))
	if second.Outcome() != "cooldown_refused" {
		t.Fatalf("the other payer's call: %d %s", second.Status, second.Body)
	}
	w.AwaitRefund(t, second.Call())
	apptest.Eventually(t, "the blocked refund is parked, with a reason", func() bool {
		r := w.Record(t, first.Call())
		return r.Refund("state") == "parked" && r.Refund("why") != ""
	})
	if err := w.Chain.SetBlocked(t.Context(), blocked.Address(), false); err != nil {
		t.Fatal(err)
	}
	w.Shift(t, 61e9)
	w.AwaitRefund(t, first.Call())
}
