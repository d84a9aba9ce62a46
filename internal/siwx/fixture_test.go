package siwx

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/call"
	"market/internal/refusal"
	"market/internal/wire"
)

const (
	goldenKey     = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d" // a well-known development key
	goldenAddress = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
)

var (
	us = Expect{Domain: "shop.test", Origin: "https://shop.test", ChainIDs: []uint64{8453, 84532}}
	// issued is the golden issuedAt.
	issued = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
)

type members map[string]any

// bare are the members that a sign-in must have.
func bare() members {
	return members{
		"domain": "shop.test", "address": goldenAddress, "uri": "https://shop.test/v1/purchases", "version": "1", "chainId": "eip155:84532",
		"type": "eip191", "nonce": "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "issuedAt": "2026-11-29T12:00:00.000Z",
	}
}

func (m members) with(name string, value any) members { m[name] = value; return m }

func (m members) header(t testing.TB) string {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return wire.EncodeBase64(data)
}

// signed is the header of members with the signature that the golden key gives their text.
func (m members) signed(t testing.TB) string {
	t.Helper()
	m["signature"] = "0x" + strings.Repeat("0", 63) + "1" + strings.Repeat("0", 63) + "1" + "1b" // of the right form, until there is the right one
	text, _, err := read(m.header(t))
	if err != nil {
		t.Fatal(err)
	}
	key, err := crypto.HexToECDSA(goldenKey)
	if err != nil {
		t.Fatal(err)
	}
	digest := text.Digest()
	raw, err := crypto.Sign(digest[:], key)
	if err != nil {
		t.Fatal(err)
	}
	raw[64] += 27
	m["signature"] = hexutil.Encode(raw)
	return m.header(t)
}

// codeOf returns the code of a refusal, and fails on any other error.
func codeOf(t *testing.T, err error) Code {
	t.Helper()
	if err == nil {
		return ""
	}
	no, ok := errors.AsType[*refusal.Error](err)
	code, coded := errors.AsType[Code](err)
	if !ok || !coded || no.Reason != call.Unauthorized {
		t.Fatalf("error = %v, want a refusal for unauthorized with a code", err)
	}
	return code
}
