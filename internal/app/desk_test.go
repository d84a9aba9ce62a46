package app_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
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
