package app_test

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/money"
)

const moneyPath = "/api/v1/admin/money"

// reconciled looks now, and returns what the admin is told.
func reconciled(t *testing.T, w *apptest.World) map[string]any {
	t.Helper()
	status, answer := w.Admin(t, http.MethodPost, moneyPath+"/reconcile", nil)
	if status != http.StatusOK {
		t.Fatalf("reconcile: %d %v", status, answer)
	}
	return answer
}

// wantRight fails where anything is said to be wrong or different.
func wantRight(t *testing.T, when string, answer map[string]any) {
	t.Helper()
	if answer["ok"] != true || len(answer["differences"].([]any)) > 0 {
		t.Fatalf("%s: wrong is %v, different %v", when, answer["wrong"], answer["differences"])
	}
}

// Somebody who has the treasury's key takes money out of it.
func TestReconciliation_WhatIsDifferentForLongClosesTheNetworkUntilItIsNot(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Burst: 900})
	second := w.Replica(t)
	s := w.List(t, "reconciled", apptest.Works, nil)
	payer := w.Payer(t, 3*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	wantRight(t, "before the first call", reconciled(t, w))
	known := w.SignFor(t, payer, terms, 900)
	if a := w.Send(t, apptest.Ask(s.URL), known); a.Status != http.StatusOK {
		t.Fatalf("a call: %d %s", a.Status, a.Body)
	}
	thief, err := chain.ParseKey(w.Env("MARKET_TREASURY_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	head, err := w.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, nobody := apptest.NewKey(t)
	a := chain.Authorization{From: w.Treasury, To: nobody.Address(), Value: money.FromUnits(7), ValidBefore: head.Time + 3_600}
	_, _ = rand.Read(a.Nonce[:]) // never fails
	w.Relay(t, apptest.Authorize(t, thief, a))
	if err := w.Chain.Mine(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wantRight(t, "at first", reconciled(t, w))
	}
	w.Shift(t, 20*time.Minute)
	answer := reconciled(t, w)
	if answer["ok"] != false || len(answer["differences"].([]any)) != 1 || answer["differences"].([]any)[0].(map[string]any)["kind"] != "outflow" {
		t.Fatalf("after twenty minutes: %v", answer)
	}
	for name, at := range map[string]apptest.Asking{"on this process": apptest.Ask(s.URL), "on the other one": second.At(t, apptest.Ask(s.URL))} {
		apptest.Eventually(t, "nobody is asked to pay "+name, func() bool { return w.Send(t, at, "").Status == http.StatusServiceUnavailable })
		if got := w.Send(t, at, known); got.Code() != "proof_required" { // known, and long ago: nobody hides it
			t.Errorf("a payment that is known %s: %d %s", name, got.Status, got.Body)
		}
	}
	for _, kind := range []string{"money_differs", "money_stops_network"} {
		if open, _, text := noticed(t, w, kind); open != 1 {
			t.Errorf("%s: %d are open: %s", kind, open, text)
		}
	}
	// The operator says that it was him.
	subject := answer["differences"].([]any)[0].(map[string]any)["subject"].(string)
	transaction, index, _ := strings.Cut(subject, "/")
	logIndex, err := strconv.Atoi(index)
	if err != nil {
		t.Fatal(err)
	}
	entry := map[string]any{"kind": "fee_withdrawal", "network": terms.Accepts[0].Network, "transaction": transaction, "log_index": logIndex, "reason": "it was us"}
	for _, want := range []int{http.StatusOK, http.StatusConflict} {
		if status, booked := w.Admin(t, http.MethodPost, moneyPath+"/entries", entry); status != want {
			t.Fatalf("book: %d %v, want %d", status, booked, want)
		}
	}
	entry["kind"] = "top_up"
	if status, booked := w.Admin(t, http.MethodPost, moneyPath+"/entries", entry); status != http.StatusNotFound {
		t.Errorf("what went out came in: %d %v", status, booked)
	}
	wantRight(t, "explained", reconciled(t, w))
	for name, at := range map[string]apptest.Asking{"on this process": apptest.Ask(s.URL), "on the other one": second.At(t, apptest.Ask(s.URL))} {
		apptest.Eventually(t, "payments go on "+name, func() bool { return w.Send(t, at, "").Status == http.StatusPaymentRequired })
	}
}
