package payment

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/refusal"
	"market/internal/wire"
)

// The challenge of the protocol's own examples.
const foreignChallenge = `{"x402Version":2,"error":"Payment required",` +
	`"resource":{"url":"https://shop.test/v1/echo","description":"Echo service","mimeType":"application/json"},` +
	`"accepts":[{"scheme":"exact","network":"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp","amount":"1","asset":"EPjFWdd5","payTo":"9xQ","maxTimeoutSeconds":60},` +
	`{"scheme":"exact","network":"eip155:84532","amount":"12345",` +
	`"asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e",` +
	`"payTo":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",` +
	`"maxTimeoutSeconds":120,"extra":{"name":"USDC","version":"2"},"odd": 1.0}],` +
	`"extensions":{"payment-identifier":{"info":{"required":false},"schema":{"type":"object"}}}}`

func TestDecodeChallenge_ReadsTheExampleOfTheProtocol(t *testing.T) {
	t.Parallel()
	r, err := DecodeChallenge(header(foreignChallenge))
	if err != nil {
		t.Fatal(err)
	}
	if r.URL != goldenResource || r.Description != "Echo service" || r.Error != "Payment required" || r.Unreadable != 1 || len(r.Accepts) != 1 {
		t.Fatalf("challenge = %+v", r)
	}
	a := r.Accepts[0]
	if name, _ := a.Extra("name"); name != "USDC" || a.Amount.String() != "12345" || a.MaxTimeoutSeconds != 120 {
		t.Errorf("entry = %+v", a)
	}
	if !strings.HasSuffix(string(a.Raw), `"odd": 1.0}`) || !strings.HasPrefix(string(a.Raw), `{"scheme"`) {
		t.Errorf("raw = %s, want the entry byte for byte", a.Raw)
	}
}

func TestDecodeChallenge_RefusesWhatItCanNotRead(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]string{
		"nothing":         "",
		"no base64":       "!",
		"no JSON":         "bm8=",
		"raw JSON (B09)":  `{"x402Version":2}`,
		"an array":        header(`[]`),
		"another version": header(`{"x402Version":1,"accepts":[]}`),
		"no accepts":      header(`{"x402Version":2}`),
		"a member twice":  header(`{"x402Version":2,"accepts":[],"accepts":[]}`),
		"too long":        strings.Repeat("A", headerBytesReadMax+1),
	} {
		if r, err := DecodeChallenge(h); err == nil {
			t.Errorf("%s: %+v, want an error", name, r)
		}
	}
}

// What a client makes of our challenge is what we then find in its payment, whoever pays whatever price.
func TestPayment_RoundTrip(t *testing.T) {
	t.Parallel()
	k := key(t)
	text := rapid.Rune().Filter(func(r rune) bool { return r != 0 }) // which neither our database nor our reader takes
	rapid.Check(t, func(t *rapid.T) {
		amount := money.FromUnits(rapid.Uint64Min(1).Draw(t, "units"))
		timeout := rapid.IntRange(30, timeoutSecondsMax).Draw(t, "timeout")
		asset := chain.Asset{
			Address:    common.BytesToAddress(append([]byte{1}, rapid.SliceOfN(rapid.Byte(), 19, 19).Draw(t, "asset")...)),
			EIP712Name: rapid.StringOfN(text, 1, 20, 60).Draw(t, "name"), EIP712Version: rapid.StringOfN(text, 1, 5, 10).Draw(t, "version"),
		}
		o, err := NewOffer(baseSepolia, asset, amount, common.HexToAddress(goldenTreasury), timeout, 7)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewChallenge(echo(rapid.StringOf(text).Draw(t, "description")), []Offer{o})
		if err != nil {
			t.Fatal(err)
		}
		required, err := DecodeChallenge(c.Header(Unpaid))
		if err != nil || len(required.Accepts) != 1 {
			t.Fatalf("DecodeChallenge = %+v, %v", required, err)
		}
		accepted := required.Accepts[0]
		a := chain.Authorization{
			From: k.Address(), To: accepted.PayTo, Value: accepted.Amount, ValidBefore: chainTime + uint64(accepted.MaxTimeoutSeconds),
			Nonce: common.BytesToHash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "nonce")),
		}
		signature, err := k.SignAuthorization(chain.NewDomain(asset, baseSepolia.ChainID), a)
		if err != nil {
			t.Fatal(err)
		}
		sent := chain.Signed{Asset: accepted.Asset, Authorization: a, Signature: signature}
		h, err := EncodePayload(accepted, required.Resource, sent)
		if err != nil {
			t.Fatal(err)
		}

		p, err := Decode(h)
		if err != nil {
			t.Fatal(err)
		}
		matched, err := Match(p, []Offer{o}, goldenResource, Extensions())
		if err != nil || matched.PriceRevision != 7 {
			t.Fatalf("Match = %+v, %v", matched, err)
		}
		got, err := Identify(p, matched)
		if err != nil {
			t.Fatal(err)
		}
		if got.Asset != sent.Asset || got.From != a.From || got.To != a.To || got.Value.Cmp(a.Value) != 0 || got.ValidAfter != a.ValidAfter ||
			got.ValidBefore != a.ValidBefore || got.Nonce != a.Nonce || got.Signature != sent.Signature {
			t.Fatalf("payment = %+v, want %+v", got, sent)
		}
		if err := CheckTerms(got, matched, chainTime); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEncodePayload_LeavesOutAMissingResource(t *testing.T) {
	t.Parallel()
	a := decoded(t, header(goldenPayload)).Accepted
	h, err := EncodePayload(a, nil, chain.Signed{})
	if err != nil || strings.Contains(decodedHeader(t, h), "resource") {
		t.Errorf("payment = %s, %v", decodedHeader(t, h), err)
	}
	if _, err := EncodePayload(Accepted{}, nil, chain.Signed{}); err == nil {
		t.Error("an entry that came from no challenge was encoded")
	}
}

func TestSettleResponse_Bytes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		response SettleResponse
		want     string
	}{
		"B09: a receipt has all four": {
			SettleResponse{Success: true, Transaction: "0x12", Network: "eip155:84532", Payer: goldenPayer},
			`{"success":true,"transaction":"0x12","network":"eip155:84532","payer":"` + goldenPayer + `"}`},
		"nothing was broadcast": {
			SettleResponse{ErrorReason: CodeFunds, Network: "eip155:84532", Payer: goldenPayer},
			`{"success":false,"errorReason":"insufficient_funds","transaction":"","network":"eip155:84532","payer":"` + goldenPayer + `"}`},
		"a reason from outside that is no code": {
			SettleResponse{ErrorReason: "<b>\n", Network: "eip155:84532"},
			`{"success":false,"errorReason":"unexpected_settle_error","transaction":"","network":"eip155:84532"}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := EncodeResponse(test.response)
			if got := decodedHeader(t, h); got != test.want {
				t.Errorf("PAYMENT-RESPONSE = %s, want %s", got, test.want)
			}
			back, err := DecodeResponse(h)
			if err != nil || back.Success != test.response.Success || back.Payer != test.response.Payer {
				t.Errorf("DecodeResponse = %+v, %v", back, err)
			}
		})
	}
	for name, h := range map[string]string{"empty": "", "raw JSON": `{"success":true}`, "wrong type": header(`{"success":"yes"}`),
		"no success": header(`{"transaction":"0x"}`), "success in another case": header(`{"Success":true}`), "a payer that is a number": header(`{"success":true,"payer":1}`),
		"success twice": header(`{"success":false,"success":true}`)} {
		if r, err := DecodeResponse(h); err == nil {
			t.Errorf("%s: %+v, want an error", name, r)
		}
	}
}

func TestCodeOfError_TheFinerCauseWins(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want Code
	}{
		"a refusal with its cause":      {refusal.New(call.SettleRejected, "").WithCause(CodeFunds), CodeFunds},
		"a refusal alone":               {refusal.New(call.SettleRejected, ""), CodeRejected},
		"a reason that x402 lacks":      {refusal.New(call.NotLive, ""), "market_not_live"},
		"a cause that is no code":       {refusal.New(call.NotLive, "").WithCause(Code("no code: é")), CodeUnexpected},
		"an error that is no refusal":   {wire.ErrNotJSON, CodeUnexpected},
		"no error at all":               {nil, CodeUnexpected},
		"the first answer is a payment": {refusal.New(call.PaymentRequired, ""), Unpaid},
	}
	for name, test := range tests {
		if got := CodeOfError(test.err); got != test.want {
			t.Errorf("%s: code = %q, want %q", name, got, test.want)
		}
	}
}
