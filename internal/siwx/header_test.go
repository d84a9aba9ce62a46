package siwx

import (
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/internal/eip4361"
	"market/internal/wire"
)

func TestRead_RefusesWhatIsNoSignIn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header string
		code   Code
	}{
		"nothing":                 {"", CodeHeader},
		"no base64":               {"leak-me!", CodeHeader},
		"no JSON":                 {wire.EncodeBase64([]byte("leak-me")), CodeHeader},
		"a list":                  {wire.EncodeBase64([]byte("[]")), CodeHeader},
		"a member twice":          {wire.EncodeBase64([]byte(`{"domain":"a","domain":"a"}`)), CodeHeader},
		"longer than the cap":     {strings.Repeat("A", headerBytesMax+1), CodeHeader},
		"no members":              {wire.EncodeBase64([]byte("{}")), CodeMessage},
		"a domain in capitals":    {wire.EncodeBase64([]byte(`{"Domain":"shop.test"}`)), CodeMessage},
		"on the cap, but no JSON": {strings.Repeat("A", headerBytesMax), CodeHeader},
	}
	for name, test := range tests {
		_, _, err := read(test.header)
		if got := codeOf(t, err); got != test.code {
			t.Errorf("%s: code = %q, want %q", name, got, test.code)
		}
		if strings.Contains(err.Error(), "leak-me") {
			t.Errorf("%s: the refusal repeats what was sent: %v", name, err)
		}
	}
}

func TestRead_RefusesMembersOfAnotherForm(t *testing.T) {
	t.Parallel()
	good := bare()
	good.signed(t)
	tests := map[string]struct {
		name  string
		value any
		code  Code
	}{
		"no address":                      {"address", nil, CodeMessage},
		"an address of 19 bytes":          {"address", goldenAddress[:40], CodeMessage},
		"an address with another prefix":  {"address", "0X" + goldenAddress[2:], CodeMessage},
		"a domain of two lines":           {"domain", "shop.test\nx", CodeMessage},
		"a domain of another kind":        {"domain", 1, CodeMessage},
		"an empty statement":              {"statement", "", CodeMessage},
		"a statement of two lines":        {"statement", "Read\n\nURI: https://evil.test", CodeMessage},
		"a statement of other letters":    {"statement", "Zahlungen für Café", CodeMessage},
		"a URI of two lines":              {"uri", "https://shop.test/\nVersion: 2", CodeMessage},
		"version 2":                       {"version", "2", CodeMessage},
		"a version that is a number":      {"version", 1, CodeMessage},
		"a request id of two lines":       {"requestId", "r\nResources:", CodeMessage},
		"a time of two lines":             {"issuedAt", "2026-11-29T12:00:00Z\n", CodeMessage},
		"resources that are text":         {"resources", "https://shop.test", CodeMessage},
		"a resource that is a number":     {"resources", []any{1}, CodeMessage},
		"a resource of two lines":         {"resources", []string{"a\n- b"}, CodeMessage},
		"an empty resource":               {"resources", []string{""}, CodeMessage},
		"more resources than we read":     {"resources", make([]string, eip4361.ResourcesMax+1), CodeMessage},
		"a short nonce":                   {"nonce", "1234567", CodeNonce},
		"a long nonce":                    {"nonce", strings.Repeat("n", eip4361.NonceBytesMax+1), CodeNonce},
		"a nonce with a hyphen":           {"nonce", "1234-5678", CodeNonce},
		"a chain of another family":       {"chainId", "solana:mainnet", CodeUnsupportedChain},
		"a signature of another kind":     {"type", "ed25519", CodeUnsupportedChain},
		"a chain id with a leading zero":  {"chainId", "eip155:084532", CodeChainID},
		"a chain id of no number":         {"chainId", "eip155:base", CodeChainID},
		"a chain id that is far too long": {"chainId", "eip155:" + strings.Repeat("9", 20), CodeChainID},
		"a chain id that is a number":     {"chainId", 84532, CodeMessage},
		"no signature":                    {"signature", nil, CodeMessage},
		"a compact signature":             {"signature", "0x" + strings.Repeat("11", 64), CodeMalformedSignature},
		"a long signature":                {"signature", "0x" + strings.Repeat("11", 66), CodeMalformedSignature},
		"a signature without prefix":      {"signature", strings.Repeat("11", 65), CodeMalformedSignature},
		"a signature of other characters": {"signature", "0x" + strings.Repeat("zz", 65), CodeMalformedSignature},
		"a signature with another v":      {"signature", "0x" + strings.Repeat("11", 64) + "1d", CodeMalformedSignature},
		"a signature with a high s":       {"signature", highS(good["signature"].(string)), CodeMalformedSignature},
		"the scheme of contract wallets":  {"signatureScheme", "eip1271", CodeMalformedSignature},
	}
	for name, test := range tests {
		m := bare().with("signature", good["signature"]).with(test.name, test.value)
		_, _, err := read(m.header(t))
		if got := codeOf(t, err); got != test.code {
			t.Errorf("%s: code = %q (%v), want %q", name, got, err, test.code)
		}
	}
}

// highS is the other signature of the same key over the same text, which anybody can make of the first.
func highS(signature string) string {
	order := hexutil.MustDecodeBig("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
	raw := hexutil.MustDecode(signature)
	s := order.Sub(order, hexutil.MustDecodeBig("0x"+strings.TrimLeft(signature[66:130], "0")))
	s.FillBytes(raw[32:64])
	raw[64] ^= 27 ^ 28
	return hexutil.Encode(raw)
}

// FuzzVerify: whatever a stranger sends is a proof or a refusal with a code.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(bare().header(f)), true)
	f.Add([]byte(bare().signed(f)), true)
	f.Add([]byte(`{"domain":"shop.test","resources":[{}]}`), false)
	f.Fuzz(func(t *testing.T, data []byte, encoded bool) {
		header := string(data)
		if !encoded {
			header = wire.EncodeBase64(data)
		}
		p, err := Verify(header, us, issued)
		if err == nil {
			if p.Nonce == "" || !p.ExpiresAt.After(issued) || p.Address.Hex() != goldenAddress {
				t.Errorf("proof = %+v", p)
			}
			return
		}
		if _, ok := errors.AsType[Code](err); !ok {
			t.Errorf("error = %v, want one with a code", err)
		}
	})
}
