package apptest

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/payment"
)

// SignV1 pays the first entry of a 402 body as x402 v1 clients do, with nothing but the standard library between the body and the header: an
// authorization that is valid from ten minutes ago on. change may alter what is signed and sent; nil leaves it.
func (w *World) SignV1(t testing.TB, payer chain.Key, challenge Answer, change func(a *chain.Authorization, envelope map[string]any)) string {
	t.Helper()
	accepts, _ := challenge.JSON["accepts"].([]any)
	if len(accepts) == 0 {
		t.Fatalf("the body offers nothing to v1 clients: %s", challenge.Body)
	}
	entry, _ := accepts[0].(map[string]any)
	extra, _ := entry["extra"].(map[string]any)
	value, err := money.ParseAmount(str(entry["maxAmountRequired"]))
	if err != nil {
		t.Fatal(err)
	}
	head, err := w.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seconds, _ := entry["maxTimeoutSeconds"].(float64)
	a := chain.Authorization{From: payer.Address(), To: common.HexToAddress(str(entry["payTo"])), Value: value,
		ValidAfter: head.Time - 600, ValidBefore: head.Time + uint64(seconds)}
	if _, err := rand.Read(a.Nonce[:]); err != nil {
		t.Fatal(err)
	}
	envelope := map[string]any{"x402Version": 1, "scheme": entry["scheme"], "network": entry["network"]}
	if change != nil {
		change(&a, envelope)
	}
	asset := chain.Asset{Address: common.HexToAddress(str(entry["asset"])), EIP712Name: str(extra["name"]), EIP712Version: str(extra["version"])}
	signature, err := payer.SignAuthorization(chain.NewDomain(asset, devnet.ChainID), a)
	if err != nil {
		t.Fatal(err)
	}
	envelope["payload"] = map[string]any{"signature": hexutil.Encode(signature[:]), "authorization": map[string]any{
		"from": a.From.Hex(), "to": a.To.Hex(), "value": a.Value.String(), "nonce": a.Nonce.Hex(),
		"validAfter": strconv.FormatUint(a.ValidAfter, 10), "validBefore": strconv.FormatUint(a.ValidBefore, 10),
	}}
	return Encode(t, envelope)
}

// InV2 is the same payment as the other version writes it.
func InV2(t testing.TB, headerV1 string, required payment.Required) string {
	t.Helper()
	var accepted map[string]any
	decodeJSON(t, required.Accepts[0].Raw, &accepted)
	return Encode(t, map[string]any{"x402Version": 2, "payload": Decode(t, headerV1)["payload"], "accepted": accepted})
}

// V1 returns the asking with a payment in X-PAYMENT.
func (a Asking) V1(header string) Asking {
	if a.Header = a.Header.Clone(); a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Set(payment.HeaderV1Payment, header)
	return a
}
