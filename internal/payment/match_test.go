package payment

import (
	"strings"
	"testing"

	"market/internal/call"
)

func TestMatch_FirstEqualOfferWins(t *testing.T) {
	t.Parallel()
	current, older := offer(t, 20000, 2), offer(t, 12345, 1)
	got, err := Match(decoded(t, header(goldenPayload)), []Offer{current, older}, goldenResource, Extensions())
	if err != nil || got.PriceRevision != 1 {
		t.Errorf("Match = revision %d, %v, want 1, the older price", got.PriceRevision, err)
	}
	same := offer(t, 12345, 3)
	if got, err = Match(decoded(t, header(goldenPayload)), []Offer{same, older}, goldenResource, Extensions()); err != nil || got.PriceRevision != 3 {
		t.Errorf("Match = revision %d, %v, want 3, the first of two", got.PriceRevision, err)
	}
}

func TestMatch_ForgivesWhatMeansTheSame(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"B21: unknown members of extra":    golden(t, `"name":"USDC"`, `"name":"USDC","mine":{"a":1}`),
		"B24: lower-case asset":            golden(t, `"asset":"`+goldenAsset, `"asset":"`+strings.ToLower(goldenAsset)),
		"B24: payTo with wrong checksum":   golden(t, `"payTo":"0x3C44C`, `"payTo":"0x3c44C`),
		"the timeout of before an edit":    golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":180`),
		"the longest timeout":              golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":3600`),
		"the shortest timeout":             golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":1`),
		"no resource":                      golden(t, `"url":"`+goldenResource+`",`, ``),
		"B18: query":                       golden(t, goldenResource, goldenResource+`?q=1&b=%20+2`),
		"B18: slash at the end":            golden(t, goldenResource, goldenResource+`/`),
		"B18: default port":                golden(t, goldenResource, `https://shop.test:443/v1/echo`),
		"B18: host in capitals":            golden(t, goldenResource, `HTTPS://SHOP.test/v1/echo`),
		"B18: escapes of plain characters": golden(t, goldenResource, `https://shop.test/v1/%65c%68o`),
		"B18: fragment":                    golden(t, goldenResource, goldenResource+`#top`),
	}
	for name, h := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Match(decoded(t, h), []Offer{offer(t, 12345, 1)}, goldenResource, Extensions()); err != nil {
				t.Errorf("Match: %v", err)
			}
		})
	}
}

func TestMatch_NamesTheFirstDifference(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		header string
		code   Code
		detail string
	}{
		"another scheme":                 {golden(t, `"scheme":"exact"`, `"scheme":"upto"`), CodeScheme, `accepted.scheme must be "exact"`},
		"another network":                {golden(t, `"network":"eip155:84532"`, `"network":"eip155:8453"`), CodeNetwork, "accepted.network"},
		"another asset":                  {golden(t, `"asset":"0x0`, `"asset":"0x1`), CodeRequirements, "accepted.asset must be " + goldenAsset},
		"B15: another payTo":             {golden(t, `"payTo":"0x3`, `"payTo":"0x4`), CodeRequirements, "accepted.payTo must be " + goldenTreasury},
		"B14: the buyer's own price":     {golden(t, `"amount":"12345"`, `"amount":"1"`), CodeRequirements, "accepted.amount is not a price"},
		"more than the price":            {golden(t, `"amount":"12345"`, `"amount":"12346"`), CodeRequirements, "accepted.amount is not a price"},
		"a timeout that we never quote":  {golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":3601`), CodeRequirements, "which is 120 now"},
		"no time at all":                 {golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":0`), CodeRequirements, "which is 120 now"},
		"B21: no extra":                  {golden(t, `,"extra":{"name":"USDC","version":"2","paymentFlow":"upfront"}`, ``), CodeDomainMissing, "accepted.extra.name is missing"},
		"B21: empty extra":               {golden(t, `{"name":"USDC","version":"2","paymentFlow":"upfront"}`, `{}`), CodeDomainMissing, "accepted.extra.name is missing"},
		"B21: extra is null":             {golden(t, `{"name":"USDC","version":"2","paymentFlow":"upfront"}`, `null`), CodeDomainMissing, "accepted.extra.name is missing"},
		"B21: wrong name and version":    {golden(t, `"name":"USDC","version":"2"`, `"name":"X","version":"9"`), CodeDomainName, `accepted.extra.name must be "USDC"`},
		"B21: wrong version":             {golden(t, `"name":"USDC","version":"2"`, `"name":"USDC","version":"9"`), CodeDomainVersion, `accepted.extra.version must be "2"`},
		"version as a number":            {golden(t, `"version":"2"`, `"version":2`), CodeDomainMissing, "accepted.extra.version is missing"},
		"no payment flow":                {golden(t, `,"paymentFlow":"upfront"`, ``), CodeRequirements, "accepted.extra.paymentFlow"},
		"settled after the work":         {golden(t, `"upfront"`, `"authorization"`), CodeRequirements, "accepted.extra.paymentFlow"},
		"B17: another path":              {golden(t, goldenResource, `https://shop.test/v1/other`), CodeRequirements, "resource.url"},
		"B17: a longer path":             {golden(t, goldenResource, goldenResource+`/more`), CodeRequirements, "resource.url"},
		"another host":                   {golden(t, goldenResource, `https://shop.example/v1/echo`), CodeRequirements, "resource.url"},
		"another port":                   {golden(t, goldenResource, `https://shop.test:8443/v1/echo`), CodeRequirements, "resource.url"},
		"another scheme of the URL":      {golden(t, goldenResource, `http://shop.test/v1/echo`), CodeRequirements, "resource.url"},
		"a path that comes back by dots": {golden(t, goldenResource, `https://shop.test/v1/x/../echo`), CodeRequirements, "resource.url"},
		"an encoded slash is no slash":   {golden(t, goldenResource, `https://shop.test/v1%2Fecho`), CodeRequirements, "resource.url"},
		"user information":               {golden(t, goldenResource, `https://me@shop.test/v1/echo`), CodeRequirements, "resource.url"},
		"no URL at all":                  {golden(t, goldenResource, `echo`), CodeRequirements, "resource.url"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Match(decoded(t, test.header), []Offer{offer(t, 12345, 1)}, goldenResource, Extensions())
			wantRefusal(t, err, call.PaymentMismatch, test.code, test.detail)
		})
	}
}

func TestMatch_ExplainsTheNearestOffer(t *testing.T) {
	t.Parallel()
	elsewhere := offer(t, 12345, 1)
	elsewhere.Network = "eip155:1"
	for _, offers := range [][]Offer{{elsewhere, offer(t, 1, 1)}, {offer(t, 1, 1), elsewhere}} {
		_, err := Match(decoded(t, header(goldenPayload)), offers, goldenResource, Extensions())
		wantRefusal(t, err, call.PaymentMismatch, CodeRequirements, "accepted.amount")
	}
	_, err := Match(decoded(t, header(goldenPayload)), nil, goldenResource, Extensions())
	wantRefusal(t, err, call.PaymentMismatch, CodeRequirements, "no offer")
}
