package chain

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/money"
)

// The golden vector was made with viem; its key is the second well-known development key.
const (
	goldenKey       = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
	goldenSeparator = "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"
	goldenDigest    = "0xc813112a5ba1a9f313f5c2021920ddb67bb18fd4ff8afe20ef54cdd4d6ae57e6"
	goldenSignature = "bf8545a00715e30fafafb560715291e0df679c515ec176d684ba56e794b2bf81" +
		"3995fd27c191691a22314c8feea0607609267369a318ad20b287bc00c684d0c51b"
)

func usdc() Asset {
	return Asset{
		Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"),
		Symbol:  "USDC", Decimals: 6, EIP712Name: "USDC", EIP712Version: "2",
	}
}

func goldenAuthorization() Authorization {
	return Authorization{
		From:        common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
		To:          common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
		Value:       money.FromUnits(12345),
		ValidBefore: 1800000000,
		Nonce:       common.Hash(bytes.Repeat([]byte{0xab}, 32)),
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parseKey(t *testing.T, s string) Key {
	t.Helper()
	k, err := ParseKey(s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
