package apptest

import (
	"testing"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/payment"
)

// Authorize signs an authorization of the development token.
func Authorize(t testing.TB, payer chain.Key, a chain.Authorization) chain.Signed {
	t.Helper()
	asset := chain.Asset{Address: devnet.TokenAddress(), EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion}
	signature, err := payer.SignAuthorization(chain.NewDomain(asset, devnet.ChainID), a)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Signed{Asset: asset.Address, Authorization: a, Signature: signature}
}

// Signed is the authorization in a payment header.
func Signed(t testing.TB, header string) chain.Signed {
	t.Helper()
	p, err := payment.Decode(header)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Signed{Asset: p.Accepted.Asset, Signature: p.Signature, Authorization: chain.Authorization{
		From: p.From, To: p.To, Value: p.Value, ValidAfter: p.ValidAfter.Big().Uint64(), ValidBefore: p.ValidBefore.Big().Uint64(), Nonce: p.Nonce,
	}}
}
