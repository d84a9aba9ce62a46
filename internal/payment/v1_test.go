package payment

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
)

func decodedV1(t testing.TB, h string) Payload {
	t.Helper()
	p, err := decodeV1(h)
	if err != nil {
		t.Fatalf("decodeV1: %v", err)
	}
	return p
}

func TestDecodeV1_ReadsTheSameAuthorizationAsVersion2(t *testing.T) {
	t.Parallel()
	p, twin := decodedV1(t, header(goldenV1)), decoded(t, header(goldenPayload))
	if !p.sameAs(twin) || p.Version != V1 || p.Scheme != "exact" || p.Network != "base-sepolia" {
		t.Errorf("payment = %+v, want the authorization of %+v", p, twin)
	}
	if p.Asset != (common.Address{}) || p.Accepted.Raw != nil || p.ResourceURL != "" || p.Identifier != "" {
		t.Errorf("payment = %+v, want no terms: version 1 echoes none", p)
	}
	long := strings.Repeat("9", 77)
	if got := decodedV1(t, v1(t, "12345", long)).Value.String(); got != long {
		t.Errorf("value = %s, want %s: 18 digits are the limit of the v1 client and not ours", got, long)
	}
}

func TestDecodeV1_RefusesWithAFixedText(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header string
		code   Code
		detail string
	}{
		"B01: JSON of another kind":            {header(`{"x402Version":1,"note":"leak-me"}`), CodePayload, "scheme must be a string"},
		"B02: base64 of no JSON":               {"bGVhay1tZQ==", CodePayload, "X-PAYMENT is not base64 of JSON"},
		"B07: v2 shape with the version of v1": {golden(t, `"x402Version":2`, `"x402Version":1`), CodePayload, "accepted belongs to a payment of version 2"},
		"B07: both shapes at once":             {v1(t, `"scheme"`, `"accepted":{},"scheme"`), CodePayload, "accepted belongs to a payment of version 2"},
		"B12: no version":                      {v1(t, `"x402Version":1,`, ``), CodeVersion, "the number 1"},
		"B12: version 2":                       {v1(t, `"x402Version":1`, `"x402Version":2`), CodeVersion, "the number 1"},
		"B12: version 3":                       {v1(t, `"x402Version":1`, `"x402Version":3`), CodeVersion, "the number 1"},
		"B12: version 0":                       {v1(t, `"x402Version":1`, `"x402Version":0`), CodeVersion, "the number 1"},
		"B12: version -1":                      {v1(t, `"x402Version":1`, `"x402Version":-1`), CodeVersion, "the number 1"},
		"B12: version as text":                 {v1(t, `"x402Version":1`, `"x402Version":"1"`), CodeVersion, "the number 1"},
		"B12: version 1.0":                     {v1(t, `"x402Version":1`, `"x402Version":1.0`), CodeVersion, "the number 1"},
		"B12: version true":                    {v1(t, `"x402Version":1`, `"x402Version":true`), CodeVersion, "the number 1"},
		"B22: CAIP-2":                          {v1(t, "base-sepolia", "eip155:84532"), CodeNetwork, "short name"},
		"B22: capitals":                        {v1(t, "base-sepolia", "Base-sepolia"), CodeNetwork, "short name"},
		"B22: space":                           {v1(t, "base-sepolia", "base-sepolia "), CodeNetwork, "short name"},
		"B22: nothing":                         {v1(t, "base-sepolia", ""), CodeNetwork, "short name"},
		"network is a number":                  {v1(t, `"base-sepolia"`, `84532`), CodePayload, "network must be a string"},
		"no scheme":                            {v1(t, `"scheme":"exact",`, ``), CodePayload, "scheme must be a string"},
		"scheme is null":                       {v1(t, `"exact"`, `null`), CodePayload, "scheme must be a string"},
		"no payload":                           {v1(t, `"payload"`, `"Payload"`), CodePayload, "payload must be an object"},
		"a payment of another kind":            {v1(t, `"authorization"`, `"transaction"`), CodePayloadKind, "EIP-3009"},
		"B49: minus one":                       {v1(t, `"12345"`, `"-1"`), CodePayload, "payload.authorization.value"},
		"B50: a JSON number":                   {v1(t, `"12345"`, `12345`), CodePayload, "payload.authorization.value must be a string"},
		"B50: an exponent":                     {v1(t, `"12345"`, `"1e4"`), CodePayload, "payload.authorization.value"},
		"a member twice":                       {v1(t, `{"x402Version":1`, `{"x402Version":1,"x402Version":1`), CodePayload, "occurs twice"},
		"half of a surrogate pair":             {v1(t, `"exact"`, `"exact\ud83d"`), CodePayload, "UTF-8"},
		"an escaped zero":                      {v1(t, `"exact"`, `"exact\u0000"`), CodePayload, "UTF-8"},
		"a byte order mark":                    {header("\ufeff" + goldenV1), CodePayload, "UTF-8"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decodeV1(test.header)
			wantRefusal(t, err, call.PaymentMalformed, test.code, test.detail)
			if err != nil && strings.Contains(err.Error(), "leak-me") {
				t.Errorf("the text repeats what was sent: %v", err)
			}
		})
	}
}

// B22: a network has one name from here on.
func TestNormalize_GivesAShortNameItsID(t *testing.T) {
	t.Parallel()
	base := chain.Network{ID: "eip155:8453", ChainID: 8453, V1Name: "base"}
	nameless := chain.Network{ID: "eip155:31337", ChainID: 31337}
	p := decodedV1(t, header(goldenV1))
	if got := p.Normalize(nameless, base, baseSepolia).Network; got != "eip155:84532" {
		t.Errorf("network = %q, want eip155:84532", got)
	}
	if got := p.Normalize(nameless, base).Network; got != "base-sepolia" {
		t.Errorf("network = %q: no network of ours has that name", got)
	}
	if got := decoded(t, header(goldenPayload)).Normalize(base).Network; got != "eip155:84532" {
		t.Errorf("network = %q: version 2 is normal as it stands", got)
	}
	for v, want := range map[Version]string{V1: "base", V2: "eip155:8453"} {
		if got := v.NetworkName(base); got != want {
			t.Errorf("version %d calls it %q, want %q", v, got, want)
		}
	}
}

// identifiedV1 takes a payment of version 1 through the steps that come before Match.
func identifiedV1(t *testing.T, h string, offers ...Offer) Payload {
	t.Helper()
	p := decodedV1(t, h).Normalize(baseSepolia)
	if signed, err := Identify(p, offers...); err == nil {
		return p.In(signed.Asset)
	}
	return p.In(usdc.Address) // what is signed for is another question than what is asked for
}

func TestMatch_V1PaysAnOfferExactly(t *testing.T) {
	t.Parallel()
	current, older := offer(t, 20000, 2), offer(t, 12345, 1)
	p := identifiedV1(t, header(goldenV1), current, older)
	got, err := Match(p, []Offer{current, older}, goldenResource, Extensions())
	if err != nil || got.PriceRevision != 1 {
		t.Errorf("Match = revision %d, %v, want 1, the older price", got.PriceRevision, err)
	}
}

func TestMatch_V1NamesTheFirstDifference(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header string
		code   Code
		detail string
	}{
		"another scheme":                  {v1(t, `"exact"`, `"upto"`), CodeScheme, `scheme must be "exact"`},
		"B22: a network that is not ours": {v1(t, "base-sepolia", "base"), CodeNetwork, "network is none"},
		"B15: another recipient":          {v1(t, goldenTreasury, goldenPayer), CodeRecipient, "payload.authorization.to must be " + goldenTreasury},
		"B14: less than the price":        {v1(t, "12345", "12344"), CodeValue, "payload.authorization.value is not a price"},
		"more than the price":             {v1(t, "12345", "12346"), CodeValue, "payload.authorization.value is not a price"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := offer(t, 12345, 1)
			_, err := Match(identifiedV1(t, test.header, o), []Offer{o}, goldenResource, Extensions())
			wantRefusal(t, err, call.PaymentMismatch, test.code, test.detail)
		})
	}
	p := decodedV1(t, header(goldenV1)).Normalize(baseSepolia)
	_, err := Match(p, []Offer{offer(t, 12345, 1)}, goldenResource, Extensions())
	wantRefusal(t, err, call.PaymentMismatch, CodeRequirements, "another asset")
	_, err = Match(p, nil, goldenResource, Extensions())
	wantRefusal(t, err, call.PaymentMismatch, CodeRequirements, "no offer")
}

// Two tokens of one network at one price: what was signed says which of them pays.
func TestIdentify_V1FindsTheAssetBySignature(t *testing.T) {
	t.Parallel()
	other := chain.Asset{Address: common.HexToAddress("0x1111"), Symbol: "OTHER", Decimals: 6, EIP712Name: "Other", EIP712Version: "1"}
	otherOffer, err := NewOffer(baseSepolia, other, money.FromUnits(12345), common.HexToAddress(goldenTreasury), 120, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := decodedV1(t, header(goldenV1)).Normalize(baseSepolia)
	for name, offers := range map[string][]Offer{
		"the other is preferred": {otherOffer, offer(t, 12345, 1)}, "the other comes later": {offer(t, 12345, 1), otherOffer},
		"with older prices of both": {otherOffer, offer(t, 9, 3), otherOffer, offer(t, 12345, 1)},
	} {
		signed, err := Identify(p, offers...)
		if err != nil || signed.Asset != usdc.Address {
			t.Fatalf("%s: Identify = %s, %v, want %s", name, signed.Asset, err, usdc.Address)
		}
		o, err := Match(p.In(signed.Asset), offers, goldenResource, Extensions())
		if err != nil || o.Asset.Address != usdc.Address {
			t.Errorf("%s: Match = %s, %v, want the asset that was signed for", name, o.Asset.Address, err)
		}
		if err := CheckTerms(signed, o, chainTime); err != nil {
			t.Errorf("%s: CheckTerms: %v", name, err)
		}
	}
	cheaper, err := NewOffer(baseSepolia, other, money.FromUnits(9), common.HexToAddress(goldenTreasury), 120, 1)
	if err != nil {
		t.Fatal(err)
	}
	forged := decodedV1(t, v1(t, "0xbf", "0xbe")).Normalize(baseSepolia)
	_, err = Identify(forged, cheaper, offer(t, 12345, 1))
	wantRefusal(t, err, call.PaymentInvalid, CodeSignature, `name "USDC"`) // the asset whose price it would pay
	_, err = Identify(p, otherOffer)
	wantRefusal(t, err, call.PaymentInvalid, CodeSignature, `name "Other"`)
	_, err = Identify(decodedV1(t, header(goldenV1)), offer(t, 12345, 1))
	wantRefusal(t, err, call.PaymentMismatch, CodeNetwork, "network is none")
}

// A payment of version 2 that names no asset is not searched one.
func TestIdentify_V2NamesItsAsset(t *testing.T) {
	t.Parallel()
	p := decoded(t, golden(t, goldenAsset, common.Address{}.Hex()))
	_, err := Identify(p, offer(t, 12345, 1))
	wantRefusal(t, err, call.PaymentMismatch, CodeNetwork, "network and asset")
}
