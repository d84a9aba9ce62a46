package apptest

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"market/internal/devnet"
	"market/internal/payment"
)

// Terms makes the terms of a call to a listed service as this marketplace words them, for when it offers none.
func (w *World) Terms(t testing.TB, s *Service, seconds int) payment.Required {
	t.Helper()
	return readTerms(t, map[string]any{"url": s.URL}, map[string]any{
		"scheme": "exact", "network": devnet.NetworkID, "amount": "2000", "asset": devnet.TokenAddress().Hex(), "payTo": w.Treasury.Hex(),
		"maxTimeoutSeconds": seconds,
		"extra":             map[string]any{"name": devnet.TokenName, "version": devnet.TokenVersion, "paymentFlow": "upfront"},
	})
}

// Changed returns terms that a client has altered before it signs them.
func Changed(t testing.TB, required payment.Required, change func(accepted map[string]any)) payment.Required {
	t.Helper()
	var resource, accepted map[string]any
	decodeJSON(t, required.Resource, &resource)
	decodeJSON(t, required.Accepts[0].Raw, &accepted)
	change(accepted)
	return readTerms(t, resource, accepted)
}

func readTerms(t testing.TB, resource, accepted map[string]any) payment.Required {
	t.Helper()
	required, err := payment.DecodeChallenge(Encode(t, map[string]any{
		"x402Version": 2, "error": "Payment required", "resource": resource, "accepts": []any{accepted},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return required
}

// Rewritten returns a payment header whose JSON was changed after it was signed.
func Rewritten(t testing.TB, header string, change func(payload map[string]any)) string {
	t.Helper()
	payload := Decode(t, header)
	change(payload)
	return Encode(t, payload)
}

// Encode writes a header as x402 does: base64 of JSON.
func Encode(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// Decode reads a header as an independent client would: with the standard library alone.
func Decode(t testing.TB, header string) map[string]any {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		t.Fatalf("%q is not base64: %v", header, err)
	}
	var v map[string]any
	decodeJSON(t, raw, &v)
	return v
}

func decodeJSON(t testing.TB, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s is not JSON: %v", raw, err)
	}
}
