package app_test

import (
	"net/http"
	"testing"
	"time"

	"market/internal/app"
	"market/internal/app/apptest"
)

// pastGrace is more than the lease of a settling call and the grace after it.
const pastGrace = 5 * time.Minute

// wantPending checks an answer to a payment of which nobody knows whether it moved money: never a 402, on which a client signs another.
func wantPending(t *testing.T, what string, a apptest.Answer) {
	t.Helper()
	if a.Status != http.StatusServiceUnavailable || a.Code() != "settlement_pending" || a.JSON["charged"] != "pending" ||
		a.Header.Get("Retry-After") == "" || a.Header.Get("PAYMENT-REQUIRED") != "" {
		t.Errorf("%s: %d, Retry-After %q, %s; want 503 settlement_pending and no terms", what, a.Status, a.Header.Get("Retry-After"), a.Body)
	}
}

// wantMoved checks what the chain has moved between a payer and the treasury, in transfers.
func wantMoved(t *testing.T, w *apptest.World, payments, refunds int) {
	t.Helper()
	if in, out := w.Transfers(t, w.Treasury); len(in) != payments || len(out) != refunds {
		t.Errorf("the chain has %d payments and %d refunds, want %d and %d", len(in), len(out), payments, refunds)
	}
}

// An unclear world has one listed service and a facilitator that does not tell what it does.
type unclear struct {
	*apptest.World
	facilitator *faulty
	service     *apptest.Service
	ask         apptest.Asking
}

func newUnclear(t *testing.T, how fault) *unclear {
	t.Helper()
	f, option := newFaulty(t, how)
	w := apptest.StartWith(t, apptest.Setup{Burst: 600, Options: []app.Option{option}})
	s := w.List(t, "unclear", apptest.Works, nil)
	return &unclear{World: w, facilitator: f, service: s, ask: apptest.Ask(s.URL)}
}

// pay signs one payment of a fresh payer that holds one price, sends it and returns its header and its call.
func (u *unclear) pay(t *testing.T) (header, id string) {
	t.Helper()
	header = u.Sign(t, u.Payer(t, apptest.PriceUnits), u.Challenge(t, u.ask))
	a := u.Send(t, u.ask, header)
	wantPending(t, "the first request", a)
	return header, a.Call()
}

func TestRecovery_APaymentThatAPausedChainHeldIsServedToARetryAndMovesOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "held-up", apptest.Works, nil)
	payer := w.Payer(t, 2*apptest.PriceUnits)
	header := w.Sign(t, payer, w.Challenge(t, apptest.Ask(s.URL)))
	w.Chain.Pause()
	first := w.Send(t, apptest.Ask(s.URL), header)
	w.Chain.Resume()
	wantPending(t, "while no block comes", first)
	again := w.Send(t, apptest.Ask(s.URL), header)
	if again.Status != http.StatusOK || again.Call() != first.Call() || again.Header.Get("PAYMENT-RESPONSE") == "" {
		t.Fatalf("the retry: %d %s, call %s, want call %s served", again.Status, again.Body, again.Call(), first.Call())
	}
	w.AwaitBooks(t, first.Call(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	wantMoved(t, w, 1, 0)
	if s.Asked() != 1 {
		t.Errorf("the service was asked %d times, want once", s.Asked())
	}
}

// B123: nothing is refunded before the settlement is proved.
func TestRecovery_NobodyComesBackForASettlement(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, hasty)
	_, id := u.pay(t)
	u.AwaitBooks(t, id, apptest.Books{State: "settled", Payment: "final"})
	u.Shift(t, time.Minute)
	if got := u.Books(t, id); got.State != "settled" {
		t.Errorf("within the grace the call is %+v, want it settled and waiting", got)
	}
	u.Shift(t, pastGrace)
	u.AwaitBooks(t, id, apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "interrupted", Refund: "confirmed"})
	record := u.Record(t, id)
	if record.JSON["charged"] != false || record.JSON["party"] != "platform" || record.JSON["asked"] != false {
		t.Errorf("the record says %s", record.Body)
	}
	wantMoved(t, u.World, 1, 1)
	if u.service.Asked() != 0 || len(u.OpenStrikes(t, u.service.Slug)) != 0 {
		t.Errorf("the service was asked %d times and has strikes %v for what was ours", u.service.Asked(), u.OpenStrikes(t, u.service.Slug))
	}
}

func TestRecovery_ARetryWithinTheGraceIsServed(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, hasty)
	header, id := u.pay(t)
	u.AwaitBooks(t, id, apptest.Books{State: "settled", Payment: "final"})
	a := u.Send(t, u.ask, header)
	if a.Status != http.StatusOK || a.Call() != id {
		t.Fatalf("the retry: %d %s, want call %s served", a.Status, a.Body, id)
	}
	u.Shift(t, pastGrace)
	u.AwaitBooks(t, id, apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	wantMoved(t, u.World, 1, 0)
	if u.service.Asked() != 1 || u.facilitator.seen.Load() != 1 {
		t.Errorf("asked %d times, sent %d times, want once each", u.service.Asked(), u.facilitator.seen.Load())
	}
}

func TestRecovery_ALostAuthorizationEndsUnchargedOnceItsTimeIsOver(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, deaf)
	payer := u.Payer(t, apptest.PriceUnits)
	header := u.SignFor(t, payer, u.Challenge(t, u.ask), 60)
	first := u.Send(t, u.ask, header)
	wantPending(t, "lost", first)
	wantPending(t, "again while it lives", u.Send(t, u.ask, header))
	if err := u.Chain.Mine(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	wantPending(t, "too old to be sent and not proved lapsed", u.Send(t, u.ask, header))
	if got := u.Books(t, first.Call()); got.State != "unknown" {
		t.Errorf("before its end the call is %+v, want unknown", got)
	}
	if err := u.Chain.Mine(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	u.Shift(t, time.Minute) // past the pause between two looks
	u.AwaitBooks(t, first.Call(), apptest.Books{State: "refused", Outcome: "refused", Reason: "settle_failed"})
	if a := u.Send(t, u.ask, header); a.Code() != "settle_failed" || a.Status != http.StatusServiceUnavailable || a.JSON["charged"] != false {
		t.Errorf("after its end: %d %s", a.Status, a.Body)
	}
	wantMoved(t, u.World, 0, 0)
	if got := u.Balance(t, payer.Address()); got != apptest.PriceUnits || u.service.Asked() != 0 {
		t.Errorf("the payer has %d units, the service was asked %d times", got, u.service.Asked())
	}
}

// Who was told no is never served, and gets back what moved after all.
func TestRecovery_ARefusedPaymentThatMovesAfterAllIsRefunded(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, honest)
	payer := u.Payer(t, apptest.PriceUnits)
	terms := u.Challenge(t, u.ask)
	if a := u.Pay(t, payer, terms, u.ask); a.Status != http.StatusOK {
		t.Fatalf("the first call: %d %s", a.Status, a.Body)
	}
	u.facilitator.set(refuses)
	header := u.Sign(t, payer, terms)
	no := u.Send(t, u.ask, header)
	expect(t, "a payment of an empty wallet", no, http.StatusPaymentRequired, "settle_rejected")
	if got := u.Books(t, no.Call()); got.State != "rejected" {
		t.Fatalf("the call is %+v, want it rejected and watched", got)
	}
	u.Mint(t, payer.Address(), apptest.PriceUnits)
	expect(t, "the same payment again", u.Send(t, u.ask, header), http.StatusPaymentRequired, "settle_rejected")
	u.facilitator.settle(t, apptest.Signed(t, header))
	u.Shift(t, time.Minute)
	u.AwaitBooks(t, no.Call(), apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "late_settlement", Refund: "confirmed", Late: true})
	again := u.Send(t, u.ask, header)
	expect(t, "the same payment after that", again, http.StatusBadGateway, "late_settlement")
	wantMoved(t, u.World, 2, 1)
	if u.service.Asked() != 1 {
		t.Errorf("the service was asked %d times, want once: for the call that was served", u.service.Asked())
	}
}

func TestRecovery_ARefusedPaymentThatNeverMovesEndsUncharged(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, honest)
	payer := u.Payer(t, apptest.PriceUnits)
	terms := u.Challenge(t, u.ask)
	if a := u.Pay(t, payer, terms, u.ask); a.Status != http.StatusOK {
		t.Fatalf("the first call: %d %s", a.Status, a.Body)
	}
	u.facilitator.set(refuses)
	no := u.Send(t, u.ask, u.SignFor(t, payer, terms, 40))
	if err := u.Chain.Mine(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	u.Shift(t, time.Minute)
	u.AwaitBooks(t, no.Call(), apptest.Books{State: "refused", Outcome: "refused", Reason: "settle_rejected"})
	wantMoved(t, u.World, 1, 0)
}

func TestRecovery_AServiceThatLeftTheShelfMeanwhileIsNotAsked(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, hasty)
	header, id := u.pay(t)
	_, gone := u.pay(t)
	for _, id := range []string{id, gone} {
		u.AwaitBooks(t, id, apptest.Books{State: "settled", Payment: "final"})
	}
	if status, _ := u.Admin(t, http.MethodDelete, "/api/v1/services/"+u.service.Slug, nil); status != http.StatusNoContent {
		t.Fatalf("retire: %d", status)
	}
	apptest.Eventually(t, "the service is retired for everybody", func() bool {
		return u.Send(t, u.ask, "").Status == http.StatusGone
	})
	a := u.Send(t, u.ask, header)
	expect(t, "the retry", a, http.StatusGone, "withdrawn")
	if a.JSON["charged"] != false || a.Refund("state") == "" || a.Call() != id {
		t.Errorf("the retry: %s", a.Body)
	}
	u.AwaitBooks(t, id, apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "withdrawn", Refund: "confirmed"})
	u.Shift(t, pastGrace)
	u.AwaitBooks(t, gone, apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "interrupted", Refund: "confirmed"})
	wantMoved(t, u.World, 2, 2)
	if u.service.Asked() != 0 {
		t.Errorf("a service that left the shelf was asked %d times", u.service.Asked())
	}
}
