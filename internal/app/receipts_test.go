package app_test

import (
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"

	"market/internal/app/apptest"
	"market/internal/devnet"
	"market/internal/payment"
)

// signedIn reads the statement in a document, which the treasury has to have signed.
func signedIn(t *testing.T, w *apptest.World, document []byte) payment.Signed {
	t.Helper()
	s, err := payment.ReadSigned(document)
	if err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	if who, err := s.Signer(); err != nil || who != w.Treasury {
		t.Errorf("signed by %s, %v, want the treasury %s", who, err, w.Treasury)
	}
	return s
}

// responseOf is what stands in PAYMENT-RESPONSE.
func responseOf(t *testing.T, a apptest.Answer) []byte {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(a.Header.Get(payment.HeaderResponse))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReceipts_AServedCallHasTheOneOfX402(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "sold", apptest.Works, map[string]any{"trial_calls_per_day": 1})
	payer := w.Payer(t, apptest.PriceUnits)
	header := w.Sign(t, payer, w.Challenge(t, apptest.Ask(s.URL)))
	a := w.Send(t, apptest.Ask(s.URL), header)
	expect(t, "the call", a, http.StatusOK, "")

	got := signedIn(t, w, responseOf(t, a))
	receipt, ok := got.Payload.(payment.Receipt)
	if !ok {
		t.Fatalf("the statement is %+v", got.Payload)
	}
	want := payment.Receipt{Version: 1, Network: devnet.NetworkID, ResourceURL: s.URL, Payer: payer.Address().Hex(), IssuedAt: receipt.IssuedAt,
		Transaction: apptest.Decode(t, a.Header.Get(payment.HeaderResponse))["transaction"].(string)}
	if receipt != want || receipt.IssuedAt == 0 {
		t.Errorf("the receipt says %+v, want %+v", receipt, want)
	}
	if read := signedIn(t, w, w.Record(t, a.Call()).Body); read != got {
		t.Errorf("the record has %+v, the answer had %+v", read, got)
	}
	if again := w.Send(t, apptest.Ask(s.URL), header); signedIn(t, w, responseOf(t, again)) != got {
		t.Error("the same payment again has another receipt")
	}
	// Nobody paid for these.
	trial := w.Send(t, apptest.Ask(s.URL).Trial(), "")
	for name, document := range map[string][]byte{
		"an unpaid request": w.Send(t, apptest.Ask(s.URL), "").Body, "a trial call": w.Record(t, trial.Call()).Body,
		"an empty wallet": w.Pay(t, w.Payer(t, 0), w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL)).Body,
	} {
		if _, err := payment.ReadSigned(document); err == nil {
			t.Errorf("%s has a receipt: %s", name, document)
		}
	}
}

func TestReceipts_WhatIsNotServedIsSaidAndSigned(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	broken := w.List(t, "broken", apptest.Fails, nil)
	picky := w.List(t, "picky", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) }, nil)
	payer := w.Payer(t, 10*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(broken.URL))
	pay := func(s *apptest.Service) apptest.Answer {
		return w.Pay(t, payer, w.Terms(t, s, 120), apptest.Ask(s.URL))
	}
	header := w.Sign(t, payer, terms)
	failed := w.Send(t, apptest.Ask(broken.URL), header)
	said := map[string]payment.Signed{}
	for name, tt := range map[string]struct {
		answer          apptest.Answer
		url             string
		outcome, reason string
	}{
		"a failure":         {failed, broken.URL, "failed", "upstream_5xx"},
		"a service at rest": {pay(broken), broken.URL, "cooldown_refused", "in_cooldown"},
		"a refusal":         {pay(picky), picky.URL, "refused", "rejected_by_service"},
	} {
		got := signedIn(t, w, tt.answer.Body)
		r, ok := got.Payload.(payment.OutcomeReceipt)
		if !ok {
			t.Errorf("%s: the statement is %+v", name, got.Payload)
			continue
		}
		want := payment.OutcomeReceipt{Version: 1, Network: devnet.NetworkID, ResourceURL: tt.url, Payer: payer.Address().Hex(), IssuedAt: r.IssuedAt,
			Transaction: tt.answer.JSON["payment"].(map[string]any)["transaction"].(string), Call: tt.answer.Call(), Outcome: tt.outcome, Reason: tt.reason,
			Amount: "2000", Asset: devnet.TokenAddress().Hex(), RefundState: payment.RefundOwed, RefundNonce: r.RefundNonce}
		if r != want || r.IssuedAt == 0 || len(r.RefundNonce) != 66 {
			t.Errorf("%s: it says %+v, want %+v", name, r, want)
		}
		if read := signedIn(t, w, w.Record(t, tt.answer.Call()).Body); read != got {
			t.Errorf("%s: the record has %+v, the answer had %+v", name, read, got)
		}
		said[tt.answer.Call()] = got
	}
	if again := w.Send(t, apptest.Ask(broken.URL), header); signedIn(t, w, again.Body) != said[failed.Call()] {
		t.Error("the same payment again has another receipt")
	}
	// The statement stays as it is, and the chain says whether it was kept.
	for id, s := range said {
		w.AwaitRefund(t, id)
		if read := signedIn(t, w, w.Record(t, id).Body); read != s {
			t.Errorf("after the refund the record has %+v, before %+v", read, s)
		}
		if !used(t, w, w.Treasury, common.HexToHash(s.Payload.(payment.OutcomeReceipt).RefundNonce)) {
			t.Errorf("call %s is refunded, and the nonce in its receipt is not used", id)
		}
	}
}

// used asks the token whether an authorization was used: authorizationState(authorizer, nonce).
func used(t *testing.T, w *apptest.World, authorizer common.Address, nonce common.Hash) bool {
	t.Helper()
	client, err := ethclient.DialContext(t.Context(), w.Chain.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	token := devnet.TokenAddress()
	input := append(common.FromHex("0xe94a0102"), append(common.LeftPadBytes(authorizer[:], 32), nonce[:]...)...)
	out, err := client.CallContract(t.Context(), ethereum.CallMsg{To: &token, Data: input}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(out).Sign() != 0
}

// What a challenge leaves out is told to whoever listed the endpoint, and to nobody else.
func TestWarnings_AreForTheOwner(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "dear", apptest.Works, map[string]any{"price_usd": "1.5"})
	path := "/api/v1/services/" + s.Slug
	warnings := func(raw []byte) []string {
		var view struct {
			Endpoints []struct{ ID, Warnings any }
			Warnings  []string
		}
		if err := json.Unmarshal(raw, &view); err != nil {
			t.Fatal(err)
		}
		for _, e := range view.Endpoints {
			if list, ok := e.Warnings.([]any); ok {
				for _, one := range list {
					view.Warnings = append(view.Warnings, one.(string))
				}
			}
		}
		return view.Warnings
	}
	admin := http.Header{"Authorization": {"Bearer " + apptest.AdminToken}}
	owners := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + path, Header: admin}, "")
	if got := warnings(owners.Body); len(got) != 1 {
		t.Errorf("the owner is warned of %q", got)
	}
	for name, header := range map[string]http.Header{"nobody": nil, "somebody who guesses": {"Authorization": {"Bearer guess"}}} {
		a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + path, Header: header}, "")
		if got := warnings(a.Body); a.Status != http.StatusOK || len(got) != 0 {
			t.Errorf("%s: %d, warned of %q", name, a.Status, got)
		}
	}
	if got := warnings(w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services", Header: admin}, "").Body); len(got) != 0 {
		t.Errorf("the list warns of %q", got)
	}
	id := owners.JSON["endpoints"].([]any)[0].(map[string]any)["id"].(string)
	for price, want := range map[string]int{"1.6": 1, "0.05": 0} {
		a := w.Send(t, apptest.Asking{Method: http.MethodPatch, URL: w.URL + path + "/endpoints/" + id, Header: admin, Body: `{"price_usd":"` + price + `"}`}, "")
		if got := warnings(a.Body); a.Status != http.StatusOK || len(got) != want {
			t.Errorf("a change to %s: %d, warned of %q", price, a.Status, got)
		}
	}
}
