package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
)

// awaitWhy waits until a network takes no paid work, and says why in these words.
func awaitWhy(t *testing.T, w *apptest.World, parts ...string) {
	t.Helper()
	apptest.Eventually(t, "not ready: "+strings.Join(parts, ", "), func() bool {
		a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.App.OpsURL() + "/readyz"}, "")
		text, _ := json.Marshal(a.JSON)
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				return false
			}
		}
		return a.Status == http.StatusServiceUnavailable
	})
}

// What the issuer of a token or the balance of the treasury stand against is refused before anybody is charged, and goes on by itself.
func TestPermits_NothingIsTakenThatCouldNotBePaidOrGivenBack(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Quiet: true})
	payer := w.Payer(t, apptest.PriceUnits)
	ask := apptest.Ask(w.List(t, "breaks", func(rw http.ResponseWriter, r *http.Request) {
		if err := w.Chain.SetBlocked(r.Context(), payer.Address(), true); err != nil {
			t.Error(err)
		}
		apptest.Fails(rw, r)
	}, nil).URL)
	terms, other := w.Challenge(t, ask), apptest.Ask(w.List(t, "rests-not", apptest.Works, nil).URL)
	closed := func(why string) {
		t.Helper()
		if a := w.Send(t, other, ""); a.Status != http.StatusServiceUnavailable || a.Code() != "not_ready" || a.JSON["charged"] == true {
			t.Errorf("%s: %d %s", why, a.Status, a.Body)
		}
	}
	set := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	set(w.Chain.SetPaused(t.Context(), true))
	awaitWhy(t, w, devnet.TokenSymbol, "is paused by its issuer")
	closed("a paused token")
	set(w.Chain.SetPaused(t.Context(), false))
	awaitReady(t, w, true)
	set(w.Chain.SetBlocked(t.Context(), w.Treasury, true))
	awaitWhy(t, w, "has the treasury "+w.Treasury.Hex()+" on its blocklist")
	closed("a blocked treasury")
	set(w.Chain.SetBlocked(t.Context(), w.Treasury, false))
	awaitReady(t, w, true)
	// A payer that the token blocks stays owed, and then somebody takes the money that it is owed.
	if a := w.Pay(t, payer, terms, ask); a.Status != http.StatusBadGateway {
		t.Fatalf("a call that fails: %d %s", a.Status, a.Body)
	}
	treasury, err := chain.ParseKey(w.Env("MARKET_TREASURY_KEY"))
	set(err)
	accepted := terms.Accepts[0]
	_, thief := apptest.NewKey(t)
	accepted.PayTo = thief.Address()
	w.Relay(t, takenFrom(t, w, treasury, accepted))
	set(w.Chain.Mine(t.Context(), 6)) // what came in is then in the balances of every machine that may answer
	w.Shift(t, time.Hour)             // the cooldown of the failure is over
	awaitWhy(t, w, "the treasury "+w.Treasury.Hex(), "holds 0 "+devnet.TokenSymbol, "owes 0.002 "+devnet.TokenSymbol)
	closed("a treasury without money")
	w.Mint(t, w.Treasury, apptest.PriceUnits)
	awaitReady(t, w, true)
	set(w.Chain.SetBlocked(t.Context(), payer.Address(), false))
	apptest.Eventually(t, "the refund is paid", func() bool { w.Shift(t, time.Minute); return w.Balance(t, payer.Address()) == apptest.PriceUnits })
}
