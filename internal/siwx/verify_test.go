package siwx

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

func TestVerify_TakesWhatMeansTheSame(t *testing.T) {
	t.Parallel()
	signature := bare()
	signature.signed(t)
	raw := hexutil.MustDecode(signature["signature"].(string))
	raw[64] -= 27
	document, err := base64.StdEncoding.DecodeString(bare().signed(t))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"a lower-case address":            recased(t, strings.ToLower(goldenAddress)),
		"an upper-case address":           recased(t, "0x"+strings.ToUpper(goldenAddress[2:])),
		"parity for v":                    bare().with("signature", hexutil.Encode(raw)).header(t),
		"members that nobody knows":       bare().with("signature", signature["signature"]).with("signatureScheme", "eip191").with("odd", 1).header(t),
		"null for what is left out":       bare().with("signature", signature["signature"]).with("statement", nil).with("resources", nil).header(t),
		"base64 for URLs":                 base64.RawURLEncoding.EncodeToString(document),
		"another path of ours":            bare().with("uri", "https://shop.test").signed(t),
		"our default port":                bare().with("uri", "https://SHOP.test:443/x?y#z").signed(t),
		"another chain that is used here": bare().with("chainId", "eip155:8453").signed(t),
		"a time of another zone":          bare().with("issuedAt", "2026-11-29T13:00:00+01:00").signed(t),
		"a nonce of 8 characters":         bare().with("nonce", "aB345678").signed(t),
		"a nonce of 128 characters":       bare().with("nonce", strings.Repeat("n", 128)).signed(t),
	}
	for name, header := range tests {
		if p, err := Verify(header, us, issued); err != nil || p.Address.Hex() != goldenAddress {
			t.Errorf("%s: Verify = %+v, %v", name, p, err)
		}
	}
}

// recased is a sign-in whose address is spelt in another way than in the signed text.
func recased(t *testing.T, address string) string {
	t.Helper()
	m := bare()
	m.signed(t)
	return m.with("address", address).header(t)
}

func TestVerify_RefusesWhatIsNotForUs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		members members
		code    Code
	}{
		"another domain":                {bare().with("domain", "evil.test"), CodeDomain},
		"a domain with another port":    {bare().with("domain", "shop.test:8443"), CodeDomain},
		"a domain with ours in front":   {bare().with("domain", "shop.test.evil.test"), CodeDomain},
		"a domain in capitals":          {bare().with("domain", "SHOP.test"), CodeDomain},
		"another host":                  {bare().with("uri", "https://evil.test/"), CodeURI},
		"another port":                  {bare().with("uri", "https://shop.test:8443/"), CodeURI},
		"another scheme":                {bare().with("uri", "http://shop.test/"), CodeURI},
		"the port of another scheme":    {bare().with("uri", "https://shop.test:80/"), CodeURI},
		"our name as a user":            {bare().with("uri", "https://shop.test@evil.test/"), CodeURI},
		"a user at ours":                {bare().with("uri", "https://me@shop.test/"), CodeURI},
		"a path alone":                  {bare().with("uri", "/v1/purchases"), CodeURI},
		"no URI at all":                 {bare().with("uri", "::"), CodeURI},
		"a chain that is not used here": {bare().with("chainId", "eip155:1"), CodeUnsupportedChain},
	}
	for name, test := range tests {
		_, err := Verify(test.members.signed(t), us, issued)
		if got := codeOf(t, err); got != test.code {
			t.Errorf("%s: code = %q, want %q", name, got, test.code)
		}
	}
}

func TestVerify_TheTimesOfASignIn(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	tests := map[string]struct {
		name, value string        // of a member to add
		at          time.Duration // after issued
		code        Code
	}{
		"just under five minutes old":      {"", "", AgeMax - ms, ""},
		"five minutes old":                 {"", "", AgeMax, ""},
		"just over five minutes old":       {"", "", AgeMax + ms, CodeTooOld},
		"just under a minute early":        {"", "", -skew + ms, ""},
		"a minute early":                   {"", "", -skew, ""},
		"just over a minute early":         {"", "", -skew - ms, CodeInFuture},
		"just before it expires":           {"expirationTime", "2026-11-29T12:01:00Z", time.Minute - ms, ""},
		"when it expires":                  {"expirationTime", "2026-11-29T12:01:00Z", time.Minute, CodeExpired},
		"just after it expired":            {"expirationTime", "2026-11-29T12:01:00Z", time.Minute + ms, CodeExpired},
		"just before it becomes valid":     {"notBefore", "2026-11-29T12:01:00Z", time.Minute - ms, CodeNotYetValid},
		"when it becomes valid":            {"notBefore", "2026-11-29T12:01:00Z", time.Minute, ""},
		"just after it became valid":       {"notBefore", "2026-11-29T12:01:00Z", time.Minute + ms, ""},
		"too old with a later end":         {"expirationTime", "2027-01-01T00:00:00Z", AgeMax + ms, CodeTooOld},
		"issued on no day":                 {"issuedAt", "2026-02-30T12:00:00Z", 0, CodeIssuedAt},
		"issued at an hour of one digit":   {"issuedAt", "2026-11-29T2:00:00Z", 0, CodeIssuedAt},
		"issued with a comma":              {"issuedAt", "2026-11-29T12:00:00,0Z", 0, CodeIssuedAt},
		"issued without a zone":            {"issuedAt", "2026-11-29T12:00:00", 0, CodeIssuedAt},
		"an end that is no time":           {"expirationTime", "soon", 0, CodeExpirationTime},
		"an empty end":                     {"expirationTime", "", 0, CodeExpirationTime},
		"a beginning that is no time":      {"notBefore", "1700000000", 0, CodeNotBefore},
		"times are compared, not spelling": {"expirationTime", "2026-11-29T14:01:00.5+02:00", time.Minute, ""},
	}
	for name, test := range tests {
		m := bare()
		if test.name != "" {
			m = m.with(test.name, test.value)
		}
		p, err := Verify(m.signed(t), us, issued.Add(test.at))
		if got := codeOf(t, err); got != test.code {
			t.Errorf("%s: code = %q, want %q", name, got, test.code)
		}
		if err == nil && p.ExpiresAt.Before(issued.Add(test.at)) {
			t.Errorf("%s: a sign-in that holds ran out at %s", name, p.ExpiresAt)
		}
	}
}

// The nonce is remembered until ExpiresAt, so nothing may be accepted later than that.
func TestVerify_SaysUntilWhenASignInHolds(t *testing.T) {
	t.Parallel()
	for expires, want := range map[string]time.Duration{
		"": AgeMax, "2026-11-29T12:01:00Z": time.Minute, "2026-11-29T12:05:00Z": AgeMax, "2026-11-29T12:05:01Z": AgeMax,
	} {
		m := bare()
		if expires != "" {
			m = m.with("expirationTime", expires)
		}
		header := m.signed(t)
		p, err := Verify(header, us, issued)
		if err != nil || !p.ExpiresAt.Equal(issued.Add(want)) {
			t.Errorf("end %q: until %s, %v, want %s after it was issued", expires, p.ExpiresAt, err, want)
		}
		if _, err := Verify(header, us, p.ExpiresAt.Add(time.Nanosecond)); err == nil {
			t.Errorf("end %q: it holds after %s", expires, p.ExpiresAt)
		}
	}
}

func TestVerify_RefusesASignatureOfSomethingElse(t *testing.T) {
	t.Parallel()
	// Every member of the text, changed after it was signed to another value that would pass alone.
	for name, other := range map[string]any{
		"address": "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC", "statement": "Give it all away", "uri": "https://shop.test/v1/other",
		"chainId": "eip155:8453", "nonce": "ffffffffffffffff", "issuedAt": "2026-11-29T12:00:01.000Z", "expirationTime": "2026-11-29T12:04:00Z",
		"notBefore": "2026-11-29T11:00:00Z", "requestId": "r", "resources": []string{"https://shop.test/other"},
	} {
		m := bare()
		m.signed(t)
		if _, err := Verify(m.with(name, other).header(t), us, issued.Add(time.Second)); codeOf(t, err) != CodeSignature {
			t.Errorf("%s: error = %v, want %s", name, err, CodeSignature)
		}
	}
	if _, err := Verify(recased(t, "0x0000000000000000000000000000000000000000"), us, issued); codeOf(t, err) != CodeSignature {
		t.Errorf("the zero address: error = %v, want %s", err, CodeSignature)
	}
}

func TestFromHeaders_TakesOne(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		values []string
		signed bool
		code   Code
	}{
		"none":     {nil, false, ""},
		"one":      {[]string{"x"}, true, ""},
		"an empty": {[]string{""}, true, ""},
		"two":      {[]string{"x", "x"}, true, CodeHeader},
	}
	for name, test := range tests {
		header, signed, err := FromHeaders(http.Header{http.CanonicalHeaderKey(Header): test.values})
		if signed != test.signed || codeOf(t, err) != test.code {
			t.Errorf("%s: signed %v, %v, want %v, %q", name, signed, err, test.signed, test.code)
		}
		if test.signed && err == nil && header != test.values[0] {
			t.Errorf("%s: header = %q", name, header)
		}
	}
}
