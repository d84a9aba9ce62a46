package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/devnet"
	"market/internal/source"
)

// A front stands before a chain as a provider of nodes does, and answers as its test has switched it.
type front struct {
	*httptest.Server
	instead atomic.Int64 // the status that it answers; 0: it passes on
}

func newFront(t testing.TB, chainURL string) *front {
	t.Helper()
	u, err := url.Parse(chainURL)
	if err != nil {
		t.Fatal(err)
	}
	f, chain := &front{}, httputil.NewSingleHostReverseProxy(u)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := f.instead.Load(); status != 0 {
			http.Error(w, "not today", int(status))
			return
		}
		r.URL.Path = "" // the chain is at no path of its own
		chain.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// turn switches to a status that it answers; 0 passes on.
func (f *front) turn(status int) { f.instead.Store(int64(status)) }

// prepaid is the node behind a front as the networks file has it.
func (f *front) prepaid() map[string]any {
	return map[string]any{"url": f.URL + "/v2/a-key-that-nobody-may-see", "metered": true, "runs_out": "prepaid"}
}

func (f *front) source(t testing.TB) string {
	t.Helper()
	return source.RPCNames(devnet.NetworkID, []string{f.URL})[0]
}

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
	var first, second *front
	w := apptest.StartWith(t, apptest.Setup{Quiet: true, Prepare: func(t testing.TB, chain *devnet.Chain) []string {
		first, second = newFront(t, chain.URL()), newFront(t, chain.URL())
		first.turn(http.StatusBadGateway)
		second.turn(http.StatusBadGateway)
		return []string{apptest.NetworksFile(t, 2, first.prepaid(), second.prepaid())}
	}})
	// It has started with no node to ask.
	awaitReady(t, w, false)
	first.turn(0)
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
	second.turn(0)
	first.turn(http.StatusPaymentRequired)
	if a := pay(); a.Outcome() != "served" {
		t.Errorf("the other node: %d %s", a.Status, a.Body)
	}
	if all, open, text := notices(t, w, "source_out", first.source(t)); all != 1 || open != 1 || strings.Contains(text, "a-key-that") {
		t.Errorf("%d notices of the node that is out of credit, %d open, want one: %s", all, open, text)
	}
	if used := unitsUsed(t, w, first.source(t)); used == 0 {
		t.Error("nothing was counted of what a metered node was asked")
	}
	required := w.Challenge(t, ask)
	second.turn(http.StatusPaymentRequired)
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
	first.turn(0)
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
	behind, there := w.Chain.Behind(in[0].Block-1), newFront(t, w.Chain.URL())
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
