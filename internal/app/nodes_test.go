package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

// awaitReady waits until a marketplace takes paid work, or does not.
func awaitReady(t *testing.T, w *apptest.World, ready bool) {
	t.Helper()
	apptest.Eventually(t, "ready: "+strconv.FormatBool(ready), func() bool {
		a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.App.OpsURL() + "/readyz"}, "")
		return ready == (a.Status == http.StatusOK)
	})
}

// B85: a node that is gone or out of credit stops nothing that another one can do, and with none left the pages are still there.
func TestNodes_OneTakesOverFromAnotherAndWithoutAnyNobodyIsCharged(t *testing.T) {
	t.Parallel()
	var first, second *apptest.Front
	w := apptest.StartWith(t, apptest.Setup{Quiet: true, Prepare: func(t testing.TB, chain *devnet.Chain) []string {
		first, second = apptest.NewFront(t, chain.URL()), apptest.NewFront(t, chain.URL())
		first.Turn(http.StatusBadGateway)
		second.Turn(http.StatusBadGateway)
		return []string{apptest.NetworksFile(t, 2, first.Prepaid(), second.Prepaid())}
	}})
	// It has started with no node to ask.
	awaitReady(t, w, false)
	first.Turn(0)
	awaitReady(t, w, true)
	ask := apptest.Ask(w.List(t, "noded", apptest.Works, nil).URL)
	payer := w.Payer(t, 10*apptest.PriceUnits)
	pay := func() apptest.Answer {
		t.Helper()
		return w.Pay(t, payer, w.Challenge(t, ask), ask)
	}
	if a := pay(); a.Outcome() != "served" {
		t.Fatalf("with one node: %d %s", a.Status, a.Body)
	}
	second.Turn(0)
	first.Turn(http.StatusPaymentRequired)
	if a := pay(); a.Outcome() != "served" {
		t.Errorf("the other node: %d %s", a.Status, a.Body)
	}
	if all, open, text := notices(t, w, "source_out", first.Source(t)); all != 1 || open != 1 || strings.Contains(text, "a-key-that") {
		t.Errorf("%d notices of the node that is out of credit, %d open, want one: %s", all, open, text)
	}
	if used := unitsUsed(t, w, first.Source(t)); used == 0 {
		t.Error("nothing was counted of what a metered node was asked")
	}
	required := w.Challenge(t, ask)
	second.Turn(http.StatusPaymentRequired)
	apptest.Eventually(t, "the network is not ready", func() bool {
		a := w.Pay(t, payer, required, ask)
		wait, _ := strconv.Atoi(a.Header.Get("Retry-After"))
		if a.Status != http.StatusServiceUnavailable || a.JSON["charged"] != false || wait < 1 || wait > 3600 {
			t.Errorf("no node: Retry-After %d, %s, want it uncharged and until when", wait, a.Body)
		}
		return a.Code() == "not_ready"
	})
	for _, page := range []string{"/", "/services/noded", "/rules", "/livez"} {
		at := w.URL
		if page == "/livez" {
			at = w.App.OpsURL()
		}
		if a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: at + page}, ""); a.Status != http.StatusOK {
			t.Errorf("without a node %s answers %d, want 200", page, a.Status)
		}
	}
	// Topped up: the next window tests it, an hour after the refusal at the latest.
	first.Turn(0)
	awaitReady(t, w, false)
	w.Shift(t, time.Hour)
	awaitReady(t, w, true)
	if a := pay(); a.Outcome() != "served" {
		t.Errorf("topped up: %d %s", a.Status, a.Body)
	}
}

// B79: a replica whose only node has not come to a payment, that another node has shown to be there, leaves it and its refund alone.
func TestNodes_OneThatIsBehindTakesNoPaymentBack(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Burst: 900, Confirmations: deep, Quiet: true})
	ask := apptest.Ask(w.List(t, "behind", apptest.Fails, nil).URL)
	a := w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, ask), ask)
	if a.Outcome() != "failed" {
		t.Fatalf("a service that fails: %d %s", a.Status, a.Body)
	}
	id := a.Call()
	in, _ := w.Transfers(t, w.Treasury)
	ctx, cancel := context.WithTimeout(t.Context(), apptest.Patience)
	defer cancel()
	if err := w.App.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	// It lacks the payment at first, and catches up.
	behind, there := w.Chain.Behind(in[0].Block-1), apptest.NewFront(t, w.Chain.URL())
	var caughtUp atomic.Bool
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if caughtUp.Load() {
			there.Config.Handler.ServeHTTP(w, r)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(node.Close)
	r := w.Replica(t, apptest.NetworksFile(t, deep, node.URL))
	apptest.Eventually(t, "the payment is looked at", func() bool {
		r.Shift(t, time.Minute)
		return looksAt(t, r, id) > 1
	})
	if got := r.Books(t, id); got.Payment != "mined" || got.Refund != "owed" {
		t.Fatalf("looked at by a node that is behind: %+v, want the payment mined and its refund owed", got)
	}
	caughtUp.Store(true)
	if err := w.Chain.Mine(t.Context(), deep); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the refund is confirmed", func() bool {
		r.Shift(t, time.Minute)
		return r.Books(t, id).Refund == "confirmed"
	})
	wantMoved(t, r, 1, 1)
}

// looksAt is how often a payment was looked at since something was found out about it.
func looksAt(t *testing.T, w *apptest.World, id string) (n int) {
	t.Helper()
	if err := w.DB.QueryRow(t.Context(), `SELECT looks FROM calls WHERE id = $1`, id).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
