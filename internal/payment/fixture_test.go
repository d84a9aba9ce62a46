package payment

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/refusal"
)

// The vector of the protocol: a well-known development key, made with another implementation.
const (
	goldenKey       = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
	goldenSeparator = "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"
	goldenDigest    = "0xc813112a5ba1a9f313f5c2021920ddb67bb18fd4ff8afe20ef54cdd4d6ae57e6"
	goldenSignature = "0xbf8545a00715e30fafafb560715291e0df679c515ec176d684ba56e794b2bf813995fd27c191691a22314c8feea0607609267369a318ad20b287bc00c684d0c51b"
	goldenNonce     = "0xabababababababababababababababababababababababababababababababab"
	goldenPayer     = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	goldenTreasury  = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
	goldenAsset     = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
	goldenResource  = "https://shop.test/v1/echo"

	goldenPayload = `{"x402Version":2,` +
		`"payload":{"signature":"` + goldenSignature + `",` +
		`"authorization":{"from":"` + goldenPayer + `","to":"` + goldenTreasury + `",` +
		`"value":"12345","validAfter":"0","validBefore":"1800000000","nonce":"` + goldenNonce + `"}},` +
		`"resource":{"url":"` + goldenResource + `","description":"Echo service","mimeType":"application/json"},` +
		`"accepted":{"scheme":"exact","network":"eip155:84532","amount":"12345","asset":"` + goldenAsset + `",` +
		`"payTo":"` + goldenTreasury + `","maxTimeoutSeconds":120,"extra":{"name":"USDC","version":"2","paymentFlow":"upfront"}},` +
		`"extensions":{"payment-identifier":{"info":{"required":false,"id":"pay_0123456789abcdef"},"schema":{"type":"object"}}}}`

	// goldenV1 is the same payment as x402 v1 writes it: one authorization has one signature, whatever carries it.
	goldenV1 = `{"x402Version":1,"scheme":"exact","network":"base-sepolia",` +
		`"payload":{"signature":"` + goldenSignature + `",` +
		`"authorization":{"from":"` + goldenPayer + `","to":"` + goldenTreasury + `",` +
		`"value":"12345","validAfter":"0","validBefore":"1800000000","nonce":"` + goldenNonce + `"}}}`

	// chainTime lies a hundred seconds before the end of the golden authorization.
	chainTime = 1800000000 - 100
)

var (
	baseSepolia = chain.Network{ID: "eip155:84532", ChainID: 84532, V1Name: "base-sepolia"}
	usdc        = chain.Asset{Address: common.HexToAddress(goldenAsset), Symbol: "USDC", Decimals: 6, EIP712Name: "USDC", EIP712Version: "2"}
)

func offer(t testing.TB, units uint64, revision int64) Offer {
	t.Helper()
	o, err := NewOffer(baseSepolia, usdc, money.FromUnits(units), common.HexToAddress(goldenTreasury), 120, revision)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func key(t testing.TB) chain.Key {
	t.Helper()
	k, err := chain.ParseKey(goldenKey)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func header(document string) string { return base64.StdEncoding.EncodeToString([]byte(document)) }

// golden is the golden payment with one part of its JSON exchanged.
func golden(t testing.TB, old, with string) string {
	t.Helper()
	return exchanged(t, goldenPayload, old, with)
}

// v1 is the same of the golden payment of version 1.
func v1(t testing.TB, old, with string) string {
	t.Helper()
	return exchanged(t, goldenV1, old, with)
}

func exchanged(t testing.TB, document, old, with string) string {
	t.Helper()
	if strings.Count(document, old) == 0 {
		t.Fatalf("the golden payment has no %s", old)
	}
	return header(strings.Replace(document, old, with, 1))
}

func decoded(t testing.TB, h string) Payload {
	t.Helper()
	p, err := Decode(h)
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	return p
}

// wantRefusal checks reason, code and a part of the detail.
func wantRefusal(t *testing.T, err error, reason call.Reason, code Code, detail string) {
	t.Helper()
	no, ok := errors.AsType[*refusal.Error](err)
	if !ok {
		t.Fatalf("error = %v, want a refusal for %s", err, reason)
	}
	if no.Reason != reason || CodeOfError(err) != code {
		t.Errorf("refusal = %s, %s, want %s, %s", no.Reason, CodeOfError(err), reason, code)
	}
	if !strings.Contains(no.Detail, detail) {
		t.Errorf("detail = %q, want %q in it", no.Detail, detail)
	}
}
