package payment

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"

	"market/internal/chain"
	"market/internal/money"
)

const (
	goldenChallenge = `{"x402Version":2,"error":"Payment required",` +
		`"resource":{"url":"https://shop.test/v1/echo","description":"Écho & <co>","mimeType":"application/json"},` +
		`"accepts":[{"scheme":"exact","network":"eip155:84532","amount":"12345",` +
		`"asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","payTo":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",` +
		`"maxTimeoutSeconds":120,"extra":{"name":"USDC","version":"2","paymentFlow":"upfront"}}],` +
		`"extensions":{"payment-identifier":{"info":{"required":false},"schema":{"type":"object","properties":{` +
		`"required":{"type":"boolean"},"id":{"type":"string","minLength":16,"maxLength":128,"pattern":"^[a-zA-Z0-9_-]+$"}},` +
		`"required":["required"]}}}}`

	goldenBody = `{"x402Version":1,"error":"Payment required","accepts":[{"scheme":"exact","network":"base-sepolia",` +
		`"maxAmountRequired":"12345","resource":"https://shop.test/v1/echo","description":"?cho & <co>","mimeType":"application/json",` +
		`"payTo":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC","maxTimeoutSeconds":120,` +
		`"asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","extra":{"name":"USDC","version":"2"}}]}`
)

func echo(description string) Resource {
	return Resource{URL: goldenResource, Description: description, MimeType: "application/json"}
}

func challenge(t *testing.T, r Resource, offers ...Offer) Challenge {
	t.Helper()
	c, err := NewChallenge(r, offers)
	if err != nil {
		t.Fatalf("NewChallenge: %v", err)
	}
	return c
}

func decodedHeader(t *testing.T, h string) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(h)
	if err != nil {
		t.Fatalf("PAYMENT-REQUIRED is not standard padded base64: %v", err)
	}
	return string(data)
}

// The bytes of the challenge are what strangers' clients are built against.
func TestChallenge_Bytes(t *testing.T) {
	t.Parallel()
	c := challenge(t, echo("Écho & <co>"), offer(t, 12345, 1))
	if diff := cmp.Diff(goldenChallenge, decodedHeader(t, c.Header(Unpaid))); diff != "" {
		t.Errorf("PAYMENT-REQUIRED (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(goldenBody, string(encodeJSON(c.Body(Unpaid)))); diff != "" {
		t.Errorf("v1 body (-want +got):\n%s", diff)
	}
}

func TestChallenge_SaysWhatWasWrongInBothVersions(t *testing.T) {
	t.Parallel()
	c := challenge(t, echo(""), offer(t, 12345, 1))
	if got := decodedHeader(t, c.Header(CodeSignature)); !strings.Contains(got, `"error":"invalid_exact_evm_signature"`) {
		t.Errorf("header = %s", got)
	}
	if got := c.Body(CodeSignature).ErrorCode; got != "invalid_exact_evm_payload_signature" {
		t.Errorf("body's error = %s", got)
	}
	for name, hostile := range map[string]Code{"long": Code(strings.Repeat("x", 97)), "quoted": `a"b`, "empty": "", "line break": "a\nb"} {
		if got := c.Body(hostile).ErrorCode; got != CodeUnexpected {
			t.Errorf("%s: body's error = %q, want %q", name, got, CodeUnexpected)
		}
		if got := decodedHeader(t, c.Header(hostile)); !strings.Contains(got, string(CodeUnexpected)) {
			t.Errorf("%s: header = %s", name, got)
		}
	}
}

func TestChallenge_BodySharesADocumentWithAProblem(t *testing.T) {
	t.Parallel()
	type problem struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Code   string `json:"code"`
	}
	data, err := json.Marshal(struct {
		Body
		problem
	}{challenge(t, echo(""), offer(t, 1, 1)).Body(Unpaid), problem{"about:blank", "t", 402, "payment_required"}})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x402Version", "error", "accepts", "type", "title", "status", "code"} {
		if members[name] == nil {
			t.Errorf("%s is missing in %s", name, data)
		}
	}
	if strings.Contains(string(data), "outputSchema") {
		t.Errorf("a null outputSchema makes the v1 client throw: %s", data)
	}
}

func TestChallenge_HeaderStaysUnderItsLimit(t *testing.T) {
	t.Parallel()
	three := []Offer{offer(t, 1, 1), offer(t, 2, 1), offer(t, 3, 1)}
	tests := map[string]string{
		"B11: 20 KB of plain text":           strings.Repeat("words ", 3500),
		"two-byte runes":                     strings.Repeat("é", 5000),
		"four-byte runes, one byte off":      "x" + strings.Repeat("🙂", 5000),
		"characters that JSON must escape":   strings.Repeat("\x01\"\\", 3000),
		"line separators, six bytes in JSON": strings.Repeat("\u2028", 3000),
		"bytes of no encoding":               strings.Repeat("\xffa", 9000),
	}
	for name, description := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := challenge(t, echo(description), three...)
			longest := Code(strings.Repeat("x", codeBytesMax))
			if got := len(c.Header(longest)); got > headerBytesWrittenMax || got < headerBytesWrittenMax-40 {
				t.Errorf("the longest header has %d bytes, want all that fits in %d", got, headerBytesWrittenMax)
			}
			var sent struct{ Resource Resource }
			if err := json.Unmarshal([]byte(decodedHeader(t, c.Header(Unpaid))), &sent); err != nil {
				t.Fatal(err)
			}
			text, whole := strings.CutSuffix(sent.Resource.Description, ellipsis)
			if !whole || !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) ||
				!strings.HasPrefix(strings.ToValidUTF8(description, ""), text) {
				t.Errorf("description was not cut between runes: …%q", text[max(0, len(text)-12):])
			}
		})
	}
}

func TestChallenge_DescriptionOnTheLimitIsWhole(t *testing.T) {
	t.Parallel()
	o := offer(t, 1, 1)
	empty := challenge(t, echo(""), o)
	room := challengeBytesMax - len(empty.json(Code(strings.Repeat("x", codeBytesMax)))) - len(`"description":"",`)
	for n, whole := range map[int]bool{room - 1: true, room: true, room + 1: false} {
		c := challenge(t, echo(strings.Repeat("d", n)), o)
		if got := !strings.HasSuffix(c.resource.Description, ellipsis); got != whole {
			t.Errorf("%d bytes more than fit: whole = %v, want %v", n-room, got, whole)
		}
	}
}

func TestNewChallenge_Refuses(t *testing.T) {
	t.Parallel()
	o := offer(t, 1, 1)
	wide := o
	wide.Asset.EIP712Name = strings.Repeat("n", 4000)
	tests := map[string]struct {
		resource Resource
		offers   []Offer
		want     string
	}{
		"B13: nothing to accept":        {echo(""), nil, "0 offers"},
		"more than three":               {echo(""), []Offer{o, o, o, o}, "4 offers"},
		"a relative URL":                {Resource{URL: "/v1/echo"}, []Offer{o}, "not absolute"},
		"a URL that v1 can not encode":  {Resource{URL: "https://shop.test/é"}, []Offer{o}, "ASCII"},
		"a URL of another kind":         {Resource{URL: "ftp://shop.test/"}, []Offer{o}, "http(s)"},
		"accepts that alone do not fit": {echo(""), []Offer{wide}, ErrChallengeTooBig.Error()},
		"a URL that alone does not fit": {Resource{URL: "https://shop.test/" + strings.Repeat("a", 4000)}, []Offer{o}, ErrChallengeTooBig.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := NewChallenge(test.resource, test.offers)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q in it", err, test.want)
			}
		})
	}
	if _, err := NewChallenge(echo(""), []Offer{wide}); !errors.Is(err, ErrChallengeTooBig) {
		t.Errorf("error = %v, want ErrChallengeTooBig", err)
	}
}

func TestChallenge_V1ListsOnlyWhatV1Knows(t *testing.T) {
	t.Parallel()
	named := func(name string, units money.Amount, chainID uint64) Offer {
		o := offer(t, 1, 1)
		o.V1Name, o.Amount, o.ChainID = name, units, chainID
		return o
	}
	units := func(s string) money.Amount {
		a, err := money.ParseAmount(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	tests := map[string]struct {
		offer  Offer
		listed bool
	}{
		"a known name":             {named("base-sepolia", units("1"), 84532), true},
		"no name":                  {named("", units("1"), 84532), false},
		"a name of later versions": {named("ethereum", units("1"), 1), false},
		"a name of another chain":  {named("base", units("1"), 84532), false},
		"an amount of 18 digits":   {named("base-sepolia", units(strings.Repeat("9", 18)), 84532), true},
		"an amount of 19 digits":   {named("base-sepolia", units("1"+strings.Repeat("0", 18)), 84532), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := challenge(t, echo(""), test.offer).Body(Unpaid)
			if got := len(body.Accepts) == 1; got != test.listed {
				t.Errorf("listed = %v, want %v", got, test.listed)
			}
			if !test.listed && (body.ErrorCode != v1Nothing || body.Accepts == nil) {
				t.Errorf("a body that lists nothing = %+v, want an explanation and []", body)
			}
			if v2 := decodedHeader(t, challenge(t, echo(""), test.offer).Header(Unpaid)); !strings.Contains(v2, test.offer.Amount.String()) {
				t.Errorf("the v2 header lost the offer: %s", v2)
			}
		})
	}
}

func TestChallenge_AmountIsThePriceInBaseUnits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		usd      string
		decimals int
		want     string
	}{
		"B44: a cent in USDC":           {"0.01", 6, "10000"},
		"B47: ten cents in 18 decimals": {"0.10", 18, "100000000000000000"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			amount, err := money.FromUSD(decimal.RequireFromString(test.usd), test.decimals)
			if err != nil {
				t.Fatal(err)
			}
			o := offer(t, 1, 1)
			o.Amount = amount
			c := challenge(t, echo(""), o)
			if got := c.accepts[0].Amount; got != test.want {
				t.Errorf("amount = %s, want %s", got, test.want)
			}
			if got := c.v1[0].MaxAmountRequired; got != test.want {
				t.Errorf("maxAmountRequired = %s, want %s", got, test.want)
			}
		})
	}
}

func TestNewOffer_Refuses(t *testing.T) {
	t.Parallel()
	payTo := common.HexToAddress(goldenTreasury)
	tests := map[string]struct {
		network chain.Network
		asset   chain.Asset
		units   uint64
		payTo   common.Address
		timeout int
	}{
		"another family of chains": {chain.Network{ID: "solana:1", ChainID: 1}, usdc, 1, payTo, 120},
		"an id of another chain":   {chain.Network{ID: "eip155:1", ChainID: 84532}, usdc, 1, payTo, 120},
		"an asset without domain":  {baseSepolia, chain.Asset{Address: usdc.Address}, 1, payTo, 120},
		"an asset without address": {baseSepolia, chain.Asset{EIP712Name: "USDC", EIP712Version: "2"}, 1, payTo, 120},
		"a price of nothing":       {baseSepolia, usdc, 0, payTo, 120},
		"nobody to pay":            {baseSepolia, usdc, 1, common.Address{}, 120},
		"no time":                  {baseSepolia, usdc, 1, payTo, 0},
		"too much time":            {baseSepolia, usdc, 1, payTo, timeoutSecondsMax + 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o, err := NewOffer(test.network, test.asset, money.FromUnits(test.units), test.payTo, test.timeout, 1); err == nil {
				t.Errorf("NewOffer = %+v, want an error", o)
			}
		})
	}
}
