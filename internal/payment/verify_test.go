package payment

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
)

func TestIdentify_GoldenVector(t *testing.T) {
	t.Parallel()
	o := offer(t, 12345, 1)
	found, err := Identify(decoded(t, header(goldenPayload)), o)
	if err != nil || found.Doubt != nil {
		t.Fatal(err, found.Doubt)
	}
	s := found.Signed
	if got := o.domain.Separator().Hex(); got != goldenSeparator {
		t.Errorf("domain separator = %s, want %s", got, goldenSeparator)
	}
	if got := found.Digest.Hex(); got != goldenDigest {
		t.Errorf("digest = %s, want %s", got, goldenDigest)
	}
	if s.From != common.HexToAddress(goldenPayer) || s.Asset != usdc.Address || s.ValidBefore != 1800000000 {
		t.Errorf("signed = %+v", s)
	}
	again, err := key(t).SignAuthorization(o.domain, s.Authorization)
	if err != nil || common.Bytes2Hex(again.Bytes()) != goldenSignature[2:] {
		t.Errorf("our own signature = %x, %v, want %s", again.Bytes(), err, goldenSignature)
	}
}

func TestIdentify_HoldsWhateverTheTerms(t *testing.T) {
	t.Parallel()
	// A known call is looked up by its signed payment even when its price or its window is no longer acceptable.
	dearer := offer(t, 99999, 2)
	if found, err := Identify(decoded(t, header(goldenPayload)), dearer); err != nil || found.Doubt != nil {
		t.Errorf("Identify: %v, doubt %v", err, found.Doubt)
	}
}

func TestIdentify_Refuses(t *testing.T) {
	t.Parallel()
	max256 := "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	tests := map[string]struct {
		header string
		reason call.Reason
		code   Code
		detail string
	}{
		"the zero address":                   {golden(t, goldenPayer, "0x0000000000000000000000000000000000000000"), call.PaymentInvalid, CodeSignature, "zero address"},
		"B41, B43: validBefore is 2^256 - 1": {golden(t, `"1800000000"`, `"`+max256+`"`), call.PaymentInvalid, CodeValidBefore, "no time"},
		"validAfter is 2^63":                 {golden(t, `"validAfter":"0"`, `"validAfter":"9223372036854775808"`), call.PaymentInvalid, CodeValidAfter, "no time"},
		"another network":                    {golden(t, `eip155:84532`, `eip155:8453`), call.PaymentMismatch, CodeNetwork, "network and asset"},
		"another asset":                      {golden(t, `"asset":"0x0`, `"asset":"0x1`), call.PaymentMismatch, CodeNetwork, "network and asset"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Identify(decoded(t, test.header), offer(t, 12345, 1))
			wantRefusal(t, err, test.reason, test.code, test.detail)
		})
	}
}

// Whether the payer took such a signature only the chain can tell: it may be a contract wallet's. The doubt is what is said where the payer has no
// code.
func TestIdentify_DoubtsWhatThePayersKeyDidNotSign(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header string
		code   Code
		detail string
	}{
		"another payer":         {golden(t, goldenPayer, goldenTreasury), CodeSignature, `name "USDC", version "2", chainId 84532`},
		"another value":         {golden(t, `"value":"12345"`, `"value":"12346"`), CodeSignature, "not the payer's"},
		"another end":           {golden(t, `"1800000000"`, `"1800000001"`), CodeSignature, "not the payer's"},
		"another nonce":         {golden(t, goldenNonce, "0x00"+goldenNonce[4:]), CodeSignature, "not the payer's"},
		"B25: the other parity": {golden(t, "d0c51b", "d0c51c"), CodeSignature, "not the payer's"},
		"B35: 66 bytes":         {golden(t, goldenSignature, goldenSignature+"00"), CodeSignature, "No contract wallet is deployed"},
		"B28, B30: a wallet that is not deployed": {golden(t, goldenSignature, undeployed(common.Address{1}, strings.Repeat("ab", 66))), CodeUndeployed, "not deployed"},
		"a wrapper without a factory":             {golden(t, goldenSignature, undeployed(common.Address{}, strings.Repeat("ab", 66))), CodeSignature, "No contract wallet is deployed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := Identify(decoded(t, test.header), offer(t, 12345, 1))
			if err != nil {
				t.Fatal(err)
			}
			wantRefusal(t, found.Doubt, call.PaymentInvalid, test.code, test.detail)
		})
	}
}

// A key that wraps its own signature has signed: the wrapper is for those who can not tell that the account needs none.
func TestIdentify_AKeysOwnSignatureMayBeWrapped(t *testing.T) {
	t.Parallel()
	plain := decoded(t, header(goldenPayload))
	p := decoded(t, golden(t, goldenSignature, undeployed(common.Address{1}, goldenSignature[2:])))
	if found, err := Identify(p, offer(t, 12345, 1)); err != nil || found.Doubt != nil || found.Signed.Signature != plain.Signature {
		t.Errorf("%v, doubt %v, want the signature inside", err, found.Doubt)
	}
}

// A signature made in a domain that the client chose must not pass, however the client names that domain in its payment.
func TestIdentify_OnlyOurDomainCounts(t *testing.T) {
	t.Parallel()
	o := offer(t, 12345, 1)
	a := chain.Authorization{From: key(t).Address(), To: o.PayTo, Value: o.Amount, ValidBefore: 1800000000, Nonce: common.HexToHash(goldenNonce)}
	tests := map[string]struct {
		asset   chain.Asset
		chainID uint64
	}{
		"B32: name of another chain": {chain.Asset{Address: usdc.Address, EIP712Name: "USD Coin", EIP712Version: "2"}, 84532},
		"B32: another version":       {chain.Asset{Address: usdc.Address, EIP712Name: "USDC", EIP712Version: "1"}, 84532},
		"another chain":              {usdc, 8453},
		"another contract":           {chain.Asset{Address: o.PayTo, EIP712Name: "USDC", EIP712Version: "2"}, 84532},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := decoded(t, header(goldenPayload))
			var err error
			if p.Signature, err = key(t).SignAuthorization(chain.NewDomain(test.asset, test.chainID), a); err != nil {
				t.Fatal(err)
			}
			found, err := Identify(p, o)
			if err != nil {
				t.Fatal(err)
			}
			wantRefusal(t, found.Doubt, call.PaymentInvalid, CodeSignature, "EIP-712 domain")
		})
	}
	t.Run("B34: an empty domain type", func(t *testing.T) {
		t.Parallel()
		private, err := crypto.HexToECDSA(goldenKey[2:])
		if err != nil {
			t.Fatal(err)
		}
		empty := crypto.Keccak256(crypto.Keccak256([]byte("EIP712Domain()")))
		digest := crypto.Keccak256([]byte("\x19\x01"), empty, structHash(a))
		raw, err := crypto.Sign(digest, private)
		if err != nil {
			t.Fatal(err)
		}
		p := decoded(t, header(goldenPayload))
		if p.Signature, err = chain.ParseSignature(raw); err != nil {
			t.Fatal(err)
		}
		found, err := Identify(p, o)
		if err != nil {
			t.Fatal(err)
		}
		wantRefusal(t, found.Doubt, call.PaymentInvalid, CodeSignature, "or in an empty one")
	})
}

func structHash(a chain.Authorization) []byte {
	word := func(b []byte) []byte { return common.LeftPadBytes(b, 32) }
	seconds := func(n uint64) []byte { return word(money.FromUnits(n).Big().Bytes()) }
	return crypto.Keccak256(
		common.FromHex("0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267"),
		word(a.From[:]), word(a.To[:]), word(a.Value.Big().Bytes()), seconds(a.ValidAfter), seconds(a.ValidBefore), a.Nonce[:])
}

func TestCheckTerms_Boundaries(t *testing.T) {
	t.Parallel()
	const now = 1_790_000_000
	o := offer(t, 12345, 1) // maxTimeoutSeconds is 120
	good := chain.Signed{Asset: o.Asset.Address, Authorization: chain.Authorization{
		To: o.PayTo, Value: o.Amount, ValidAfter: 0, ValidBefore: now + 120}}
	tests := map[string]struct {
		change func(*chain.Signed)
		code   Code // empty: it passes
		detail string
	}{
		"as offered":                           {func(*chain.Signed) {}, "", ""},
		"B15: to somebody else":                {func(s *chain.Signed) { s.To[0]++ }, CodeRecipient, "authorization.to"},
		"another asset":                        {func(s *chain.Signed) { s.Asset[0]++ }, CodeRequirements, "another asset"},
		"B14: one unit less":                   {func(s *chain.Signed) { s.Value = money.FromUnits(12344) }, CodeValue, "exactly 12345"},
		"one unit more":                        {func(s *chain.Signed) { s.Value = money.FromUnits(12346) }, CodeValue, "exactly 12345"},
		"nothing":                              {func(s *chain.Signed) { s.Value = money.Amount{} }, CodeValue, "exactly 12345"},
		"valid since a second ago":             {func(s *chain.Signed) { s.ValidAfter = now - 1 }, "", ""},
		"valid after now is not valid yet":     {func(s *chain.Signed) { s.ValidAfter = now }, CodeValidAfter, "not valid yet"},
		"B37: valid in 30 s":                   {func(s *chain.Signed) { s.ValidAfter = now + 30 }, CodeValidAfter, "not valid yet"},
		"B39: 29 s left":                       {func(s *chain.Signed) { s.ValidBefore = now + 29 }, CodeValidBefore, "at least 30 s"},
		"30 s left":                            {func(s *chain.Signed) { s.ValidBefore = now + 30 }, "", ""},
		"31 s left":                            {func(s *chain.Signed) { s.ValidBefore = now + 31 }, "", ""},
		"expired long ago":                     {func(s *chain.Signed) { s.ValidBefore = 0 }, CodeValidBefore, "at least 30 s"},
		"one second inside the longest window": {func(s *chain.Signed) { s.ValidBefore = now + 120 + 900 - 1 }, "", ""},
		"the longest window":                   {func(s *chain.Signed) { s.ValidBefore = now + 120 + 900 }, "", ""},
		"B41: one second past it":              {func(s *chain.Signed) { s.ValidBefore = now + 120 + 900 + 1 }, CodeValidBefore, "must not be after"},
		"B41: a week":                          {func(s *chain.Signed) { s.ValidBefore = now + 600000 }, CodeValidBefore, "must not be after"},
		"the last time there is":               {func(s *chain.Signed) { s.ValidBefore = 1<<63 - 1 }, CodeValidBefore, "must not be after"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := good
			test.change(&s)
			err := CheckTerms(s, o, now)
			if test.code == "" {
				if err != nil {
					t.Errorf("CheckTerms: %v", err)
				}
				return
			}
			wantRefusal(t, err, call.PaymentInvalid, test.code, test.detail)
		})
	}
}
