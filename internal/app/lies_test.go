package app_test

import (
	"net/http"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
)

// Whatever a facilitator says, the service works for money that our own node sees, and a caller is asked to sign again only where our own
// node sees that it can not have paid. Each lie comes after a call that the same facilitator settles honestly.
func TestLies_AFacilitatorIsBelievedOnlyAsFarAsOurOwnNodeBearsItOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		how   fault
		mines bool
	}{
		"it says no and does nothing":                        {refuses, false},
		"it says no and mines later":                         {relents, true},
		"it says that it sent nothing, and did not":          {pretends, false},
		"it says that it sent nothing, and mines":            {keepsSaying, true},
		"it says that it does not know, and did nothing":     {deaf, false},
		"it says that it does not know, and mines":           {hasty, true},
		"it says yes and names a transaction of nobody":      {boasts, false},
		"it says yes and names what paid another call":       {borrows, false},
		"it says yes and names what paid another, and mines": {borrowsLater, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnclear(t, honest)
			terms := u.Challenge(t, u.ask)
			control := u.Pay(t, u.Payer(t, apptest.PriceUnits), terms, u.ask)
			if control.Status != http.StatusOK {
				t.Fatalf("told the truth: %d %s", control.Status, control.Body)
			}
			u.facilitator.set(tt.how)
			payer := u.Payer(t, apptest.PriceUnits)
			header := u.SignFor(t, payer, terms, 60)
			lied := u.Send(t, u.ask, header)
			wantPending(t, "told the lie", lied)
			if u.service.Asked() != 1 {
				t.Fatalf("the service was asked %d times, want once: for what was paid", u.service.Asked())
			}
			if tt.mines {
				u.AwaitBooks(t, lied.Call(), apptest.Books{State: "settled", Payment: "final"})
				if a := u.Send(t, u.ask, header); a.Status != http.StatusOK || a.Call() != lied.Call() {
					t.Errorf("sent again: %d %s", a.Status, a.Body)
				}
				wantMoved(t, u.World, 2, 0)
				return
			}
			if err := u.Chain.Mine(t.Context(), 70); err != nil {
				t.Fatal(err)
			}
			u.Shift(t, time.Minute)
			u.AwaitBooks(t, lied.Call(), apptest.Books{State: "refused", Outcome: "refused", Reason: "settle_failed"})
			wantMoved(t, u.World, 1, 0)
			if got := u.Balance(t, payer.Address()); got != apptest.PriceUnits || u.service.Asked() != 1 {
				t.Errorf("the payer has %d units, the service was asked %d times", got, u.service.Asked())
			}
		})
	}
}

// Success without the transfer: the token takes the authorization, reports success and moves nothing.
func TestLies_ATokenThatReportsSuccessPaysNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lie    devnet.Lie
		reason string
	}{
		"it does nothing":           {devnet.Silent, "settle_failed"},
		"it only uses the nonce up": {devnet.UsedOnly, "settle_rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.StartWith(t, apptest.Setup{Burst: 600})
			s := w.List(t, "unpaid", apptest.Works, nil)
			terms := w.Challenge(t, apptest.Ask(s.URL))
			if a := w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, apptest.Ask(s.URL)); a.Status != http.StatusOK {
				t.Fatalf("an honest token: %d %s", a.Status, a.Body)
			}
			payer := w.Payer(t, apptest.PriceUnits)
			if err := w.Chain.SetLie(t.Context(), tt.lie); err != nil {
				t.Fatal(err)
			}
			a := w.Send(t, apptest.Ask(s.URL), w.SignFor(t, payer, terms, 60))
			wantPending(t, "a lying token", a)
			if err := w.Chain.Mine(t.Context(), 70); err != nil {
				t.Fatal(err)
			}
			w.Shift(t, time.Minute)
			w.AwaitBooks(t, a.Call(), apptest.Books{State: "refused", Outcome: "refused", Reason: tt.reason})
			wantMoved(t, w, 1, 0)
			if s.Asked() != 1 {
				t.Errorf("the service was asked %d times, want once", s.Asked())
			}
		})
	}
}

// A payer signs two authorizations with one nonce, and the cheap one is mined.
func TestLies_AnotherValueWithTheSameNonceIsNoPayment(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "short-changed", apptest.Works, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, 10*apptest.PriceUnits)
	if a := w.Pay(t, payer, terms, apptest.Ask(s.URL)); a.Status != http.StatusOK {
		t.Fatalf("the whole price: %d %s", a.Status, a.Body)
	}
	header := w.Sign(t, payer, terms)
	cheap := apptest.Signed(t, header).Authorization
	cheap.Value = money.FromUnits(1)
	token := devnet.TokenAddress()
	newAttacker(t, w).send(t, &token, 200_000, chain.Calldata(apptest.Authorize(t, payer, cheap)))
	a := w.Send(t, apptest.Ask(s.URL), header)
	expect(t, "one unit for the price", a, http.StatusPaymentRequired, "settle_rejected")
	if s.Asked() != 1 {
		t.Errorf("the service was asked %d times, want once", s.Asked())
	}
}
