package chain

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"pgregory.net/rapid"

	"market/internal/money"
)

func TestDomain_MatchesTheGoldenVector(t *testing.T) {
	t.Parallel()
	d := NewDomain(usdc(), 84532)
	if got := d.Separator().Hex(); got != goldenSeparator {
		t.Errorf("separator = %s, want %s", got, goldenSeparator)
	}
	if got := d.Digest(goldenAuthorization()).Hex(); got != goldenDigest {
		t.Errorf("digest = %s, want %s", got, goldenDigest)
	}
}

func TestDomain_Digest_AgreesWithTheGeneralImplementation(t *testing.T) {
	t.Parallel()
	name := rapid.StringN(1, 40, -1) // the general implementation takes an empty name for an absent one
	rapid.Check(t, func(t *rapid.T) {
		asset := Asset{
			Address:    common.Address(bytesOf(t, "asset", 20)),
			EIP712Name: name.Draw(t, "name"), EIP712Version: name.Draw(t, "version"),
		}
		chainID := rapid.Uint64Min(1).Draw(t, "chain id")
		value, err := money.FromBig(new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "value")))
		if err != nil {
			t.Fatal(err)
		}
		a := Authorization{
			From: common.Address(bytesOf(t, "from", 20)), To: common.Address(bytesOf(t, "to", 20)),
			Value: value, Nonce: common.Hash(bytesOf(t, "nonce", 32)),
			ValidAfter: rapid.Uint64().Draw(t, "valid after"), ValidBefore: rapid.Uint64().Draw(t, "valid before"),
		}
		want, _, err := apitypes.TypedDataAndHash(typedData(asset, chainID, a))
		if err != nil {
			t.Fatal(err)
		}
		if got := NewDomain(asset, chainID).Digest(a); got != common.Hash(want) {
			t.Fatalf("digest = %s, want %x", got, want)
		}
	})
}

func bytesOf(t *rapid.T, label string, n int) []byte {
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label)
}

func typedData(asset Asset, chainID uint64, a Authorization) apitypes.TypedData {
	return apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": {
				{Name: "name", Type: "string"}, {Name: "version", Type: "string"},
				{Name: "chainId", Type: "uint256"}, {Name: "verifyingContract", Type: "address"},
			},
			"TransferWithAuthorization": {
				{Name: "from", Type: "address"}, {Name: "to", Type: "address"}, {Name: "value", Type: "uint256"},
				{Name: "validAfter", Type: "uint256"}, {Name: "validBefore", Type: "uint256"}, {Name: "nonce", Type: "bytes32"},
			},
		},
		PrimaryType: "TransferWithAuthorization",
		Domain: apitypes.TypedDataDomain{
			Name: asset.EIP712Name, Version: asset.EIP712Version,
			ChainId: (*math.HexOrDecimal256)(new(big.Int).SetUint64(chainID)), VerifyingContract: asset.Address.Hex(),
		},
		Message: apitypes.TypedDataMessage{
			"from": a.From.Hex(), "to": a.To.Hex(), "value": a.Value.String(),
			"validAfter": new(big.Int).SetUint64(a.ValidAfter), "validBefore": new(big.Int).SetUint64(a.ValidBefore),
			"nonce": a.Nonce.Hex(),
		},
	}
}
