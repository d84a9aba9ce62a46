package app_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/notify"
)

// The whole program of `market facilitator`, from its environment on: one payment to a seller that is not of this marketplace.
func TestFacilitator_SettlesForASellerThatIsNotOfThisMarketplace(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	f := w.Facilitator(t)
	const price = 1_234
	payer := w.Payer(t, 10*price)
	_, shop := apptest.NewKey(t)
	head, err := w.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := apptest.Authorize(t, payer, chain.Authorization{From: payer.Address(), To: shop.Address(), Value: money.FromUnits(price),
		ValidBefore: head.Time + 120, Nonce: common.Hash{1}})
	terms := map[string]any{
		"scheme": "exact", "network": devnet.NetworkID, "amount": strconv.Itoa(price), "asset": devnet.TokenAddress().Hex(), "payTo": shop.Address().Hex(),
		"maxTimeoutSeconds": 60, "extra": map[string]any{"name": devnet.TokenName, "version": devnet.TokenVersion},
	}
	raw, err := json.Marshal(map[string]any{
		"x402Version": 2, "paymentRequirements": terms,
		"paymentPayload": map[string]any{"x402Version": 2, "accepted": terms, "payload": map[string]any{
			"signature": hexutil.Encode(s.Signature.Bytes()),
			"authorization": map[string]any{"from": s.From.Hex(), "to": s.To.Hex(), "value": s.Value.String(), "validAfter": "0",
				"validBefore": strconv.FormatUint(s.ValidBefore, 10), "nonce": s.Nonce.Hex()},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, url, token string) apptest.Answer {
		a := apptest.Asking{Method: method, URL: url, Header: http.Header{}}
		if method == http.MethodPost {
			a.Body = string(raw)
		}
		if token != "" {
			a.Header.Set("Authorization", "Bearer "+token)
		}
		return w.Send(t, a, "")
	}

	if a := ask(http.MethodGet, f.Desk.OpsURL()+"/metrics", ""); a.Status != http.StatusOK || !strings.Contains(string(a.Body), "go_goroutines ") {
		t.Errorf("metrics: %d %s", a.Status, a.Body)
	}
	if a := ask(http.MethodGet, f.Desk.OpsURL()+"/readyz", ""); a.Status != http.StatusOK || a.JSON["ready"] != true {
		t.Errorf("readyz: %d %s", a.Status, a.Body)
	}
	if a := ask(http.MethodGet, f.URL+"/supported", ""); a.Status != http.StatusOK || !strings.Contains(string(a.Body), devnet.V1Name) {
		t.Errorf("supported: %d %s", a.Status, a.Body)
	}
	if a := ask(http.MethodPost, f.URL+"/settle", ""); a.Status != http.StatusUnauthorized {
		t.Errorf("without a key: %d %s", a.Status, a.Body)
	}
	if a := ask(http.MethodPost, f.URL+"/verify", apptest.FacilitatorToken); a.Status != http.StatusOK || a.JSON["isValid"] != true {
		t.Errorf("verify: %d %s", a.Status, a.Body)
	}
	settled := ask(http.MethodPost, f.URL+"/settle", apptest.FacilitatorToken)
	if settled.Status != http.StatusOK || settled.JSON["success"] != true || settled.JSON["payer"] != payer.Address().Hex() {
		t.Fatalf("settle: %d %s", settled.Status, settled.Body)
	}
	f.Restart(t)
	if a := ask(http.MethodPost, f.URL+"/settle", apptest.FacilitatorToken); string(a.Body) != string(settled.Body) {
		t.Errorf("settle after a restart: %d %s, want %s", a.Status, a.Body, settled.Body)
	}
	if got := w.Balance(t, shop.Address()); got != price {
		t.Errorf("the seller has %d, want %d", got, price)
	}
	if got := w.Balance(t, w.Treasury); got != 0 {
		t.Errorf("our treasury has %d of a stranger's payment", got)
	}
}

// The database may be that of a `market serve`, and a node that both ask is one row there: what the facilitator finds out is told by nobody else. Here it alone
// asks the first node, so that it cannot be the serve that has told.
func TestFacilitator_WhatItsNodesRefuseIsToldByAServeOnItsDatabase(t *testing.T) {
	t.Parallel()
	in := apptest.NewInbox(t)
	w := apptest.Start(t, in.Env...)
	front := apptest.NewFront(t, w.Chain.URL())
	source := front.Source(t)
	f := w.Facilitator(t, "MARKET_DATABASE_URL="+w.DB.Config().ConnString(), apptest.NetworksFile(t, 2, front.Prepaid(), w.Chain.URL()))
	asks := func() { w.Send(t, apptest.Asking{Method: http.MethodGet, URL: f.Desk.OpsURL() + "/readyz"}, "") }

	front.Turn(http.StatusPaymentRequired)
	apptest.Eventually(t, "the operator is told", func() bool { asks(); return len(in.Mail.Mails()) > 0 })
	if all, open, text := notices(t, w, "source_out", source); all != 1 || open != 1 || !strings.Contains(text, "no credit or quota is left") {
		t.Errorf("%d notices of the node, %d open: %s", all, open, text)
	}
	front.Turn(0)
	w.Shift(t, time.Hour)
	f.Restart(t) // it reads what is out when it starts, else within a minute: the window has ended
	apptest.Eventually(t, "its node is used again", func() bool { asks(); return works(t, w, source) })
	w.Shift(t, notify.CalmFor)
	f.Restart(t)
	apptest.Eventually(t, "the operator is told that it is over", func() bool { asks(); return len(in.Mail.Mails()) > 1 })
	if all, open, _ := notices(t, w, "source_out", source); all != 1 || open != 0 {
		t.Errorf("%d notices of the node that works again, %d open", all, open)
	}
}

// works says that a source which was out is not any more.
func works(t *testing.T, w *apptest.World, source string) (works bool) {
	t.Helper()
	if err := w.DB.QueryRow(t.Context(), `SELECT exhausted_at IS NULL FROM source_state WHERE source = $1`, source).Scan(&works); err != nil {
		t.Fatal(err)
	}
	return works
}
