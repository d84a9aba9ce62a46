package app_test

import (
	"net/http"
	"sync"
	"testing"

	"market/internal/app/apptest"
)

// B53, B54, B92: one payment is one call, however many requests carry it at once.
func TestReplay_OnePaymentAtOnceIsAskedOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s, other := w.List(t, "once", apptest.Works, nil), w.List(t, "elsewhere", apptest.Works, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, 10*apptest.PriceUnits)
	header := w.Sign(t, payer, terms)

	const requests = 20
	var wg sync.WaitGroup
	for range requests {
		wg.Go(func() {
			switch a := w.Send(t, apptest.Ask(s.URL), header); {
			case a.Status == http.StatusOK && string(a.Body) == `{"done":true}`: // first, or kept
			case a.Code() == "in_progress" && a.Status == http.StatusConflict && a.Header.Get("Retry-After") != "":
			default:
				t.Errorf("the same payment at once: %d %s", a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if s.Asked() != 1 {
		t.Errorf("%d requests to the service, want one", s.Asked())
	}
	if got := w.Balance(t, payer.Address()); got != 9*apptest.PriceUnits {
		t.Errorf("the payer has %d units, want one price less", got)
	}

	a := w.Send(t, apptest.Ask(s.URL).With(`{"n":2}`), header)
	expect(t, "the payment with another body", a, http.StatusConflict, "payment_reused")
	a = w.Send(t, apptest.Ask(other.URL), header)
	expect(t, "the payment at another service", a, http.StatusConflict, "payment_reused")
	if other.Asked() != 0 {
		t.Errorf("the other service was asked %d times for a payment that was not its own", other.Asked())
	}
}

// A gate, a delisting or an expiry never hides a known call.
func TestReplay_AKnownCallIsFoundWhateverBecameOfItsService(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "gone", apptest.Works, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, 10*apptest.PriceUnits)
	served, failed := w.Sign(t, payer, terms), w.Sign(t, payer, terms)
	first := w.Send(t, apptest.Ask(s.URL), served)
	if first.Status != http.StatusOK {
		t.Fatalf("served call: %d %s", first.Status, first.Body)
	}
	s.Do(apptest.Fails)
	second := w.Send(t, apptest.Ask(s.URL), failed)
	expect(t, "the failure", second, http.StatusBadGateway, "upstream_5xx")

	if status, _ := w.Admin(t, http.MethodDelete, "/api/v1/services/"+s.Slug, nil); status != http.StatusNoContent {
		t.Fatalf("retire: %d", status)
	}
	apptest.Eventually(t, "the service is retired for everybody", func() bool {
		return w.Send(t, apptest.Ask(s.URL), "").Status == http.StatusGone
	})
	again := w.Send(t, apptest.Ask(s.URL), served)
	if again.Status != http.StatusOK || again.Call() != first.Call() || string(again.Body) != string(first.Body) || again.Outcome() != "served" {
		t.Errorf("the served payment again: %d %s, call %s, want the answer of call %s", again.Status, again.Body, again.Call(), first.Call())
	}
	again = w.Send(t, apptest.Ask(s.URL), failed)
	expect(t, "the failed payment again", again, http.StatusBadGateway, "upstream_5xx")
	if again.Call() != second.Call() || again.Refund("state") == "" {
		t.Errorf("it is call %s, refund %q, want call %s with its refund", again.Call(), again.Refund("state"), second.Call())
	}
	expect(t, "a payment that was never used", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusGone, "not_listed")
}

// B58, B64, B68: what was sent and not proved is never a 402, on which a client would sign a second payment.
func TestSettlement_SentAndNotProvedIsPending(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "slow-chain", apptest.Works, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, 10*apptest.PriceUnits)
	header := w.Sign(t, payer, terms)

	w.Chain.Pause()
	a := w.Send(t, apptest.Ask(s.URL), header)
	expect(t, "a payment while no block comes", a, http.StatusServiceUnavailable, "settlement_pending")
	if a.JSON["charged"] != "pending" || a.Header.Get("Retry-After") == "" || a.Outcome() != "pending" || a.Call() == "" {
		t.Errorf("charged %v, Retry-After %q, outcome %s, call %q", a.JSON["charged"], a.Header.Get("Retry-After"), a.Outcome(), a.Call())
	}
	if paid, _ := a.JSON["payment"].(map[string]any); paid["transaction"] == "" || paid["transaction"] == nil {
		t.Errorf("the answer does not name the transaction that was sent: %s", a.Body)
	}
	expect(t, "the same payment again", w.Send(t, apptest.Ask(s.URL), header), http.StatusServiceUnavailable, "settlement_pending")
	if record := w.Record(t, a.Call()); record.JSON["state"] != "unknown" || record.JSON["charged"] != "pending" {
		t.Errorf("the record says %s", record.Body)
	}
	w.Chain.Resume()
	if s.Asked() != 0 {
		t.Errorf("the service was asked %d times for money that had not moved", s.Asked())
	}
}

// Nothing of the authorization left us, so the same payment may be sent again.
func TestSettlement_RefusedInSimulationIsReleasedAndMayBeSentAgain(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "released", apptest.Works, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, apptest.PriceUnits)
	if a := w.Pay(t, payer, terms, apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Fatalf("first call: %d %s", a.Status, a.Body)
	}
	header := w.Sign(t, payer, terms)
	refused := w.Send(t, apptest.Ask(s.URL), header)
	expect(t, "a payment without funds", refused, http.StatusPaymentRequired, "settle_rejected")
	if refused.Header.Get("PAYMENT-REQUIRED") == "" || refused.Header.Get("PAYMENT-RESPONSE") == "" || refused.JSON["error"] != "insufficient_funds" {
		t.Errorf("it lacks the terms, the receipt or x402's code: %s", refused.Body)
	}
	w.Mint(t, payer.Address(), apptest.PriceUnits)
	a := w.Send(t, apptest.Ask(s.URL), header)
	if a.Status != http.StatusOK || a.Call() != refused.Call() {
		t.Errorf("the same payment with funds: %d, call %s, want 200 and call %s", a.Status, a.Call(), refused.Call())
	}
}

// B87: a caller that leaves changes nothing.
func TestPaidPath_ACallerThatLeavesDoesNotStopTheCall(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	asked, release := make(chan struct{}), make(chan struct{})
	s := w.List(t, "left", func(rw http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		apptest.Works(rw, r)
	}, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, apptest.PriceUnits)
	id := w.SendAndLeave(t, apptest.Ask(s.URL), w.Sign(t, payer, terms), asked)
	close(release)
	apptest.Eventually(t, "the call ends served", func() bool {
		return w.Record(t, id()).JSON["state"] == "served"
	})
}
