package payment

import (
	"net/http"
	"strings"
	"testing"

	"market/internal/call"
)

func headersOf(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestFromHeaders_OneRequestIsOnePayment(t *testing.T) {
	t.Parallel()
	v2, v1Header := header(goldenPayload), header(goldenV1)
	tests := map[string]struct {
		headers http.Header
		want    Version
	}{
		"B06a: PAYMENT-SIGNATURE alone is version 2":               {headersOf("PAYMENT-SIGNATURE", v2), V2},
		"B06b: X-PAYMENT alone is version 1":                       {headersOf("X-PAYMENT", v1Header), V1},
		"B06c: one payment in both forms is version 2":             {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v1Header), V2},
		"B06c: one payment in one form under both names":           {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v2), V2},
		"B06c: one payment in two spellings":                       {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", golden(t, goldenPayer, strings.ToLower(goldenPayer))), V2},
		"B06e: PAYMENT-SIGNATURE in any case":                      {headersOf("payment-SIGNATURE", v2), V2},
		"B06e: X-PAYMENT in any case":                              {headersOf("x-payment", v1Header), V1},
		"B04: X-PAYMENT without padding":                           {headersOf("X-PAYMENT", strings.TrimRight(v1Header, "=")), V1},
		"an underscore does not make it the header of somebody":    {headersOf("X-PAYMENT", v1Header, "X_PAYMENT", "x"), V1},
		"the answer's header in a request is nothing of a payment": {headersOf("X-PAYMENT", v1Header, "X-PAYMENT-RESPONSE", "x"), V1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !Sent(test.headers) {
				t.Error("no payment was seen")
			}
			p, err := FromHeaders(test.headers)
			if err != nil || p.Version != test.want {
				t.Errorf("payment = version %d, %v, want version %d", p.Version, err, test.want)
			}
		})
	}
}

func TestFromHeaders_RefusesWhatIsNotOnePayment(t *testing.T) {
	t.Parallel()
	v2, v1Header := header(goldenPayload), header(goldenV1)
	tests := map[string]struct {
		headers http.Header
		code    Code
		detail  string
	}{
		"B06d: another value":                        {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v1(t, "12345", "12346")), CodePayload, "different payments"},
		"B06d: another payer":                        {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v1(t, goldenPayer, goldenTreasury)), CodePayload, "different payments"},
		"B06d: another recipient":                    {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v1(t, goldenTreasury, goldenPayer)), CodePayload, "different payments"},
		"B06d: another nonce":                        {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v1(t, "0xab", "0xac")), CodePayload, "different payments"},
		"B06d: another start":                        {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v1(t, `"0"`, `"1"`)), CodePayload, "different payments"},
		"B06d: another end":                          {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v1(t, "1800000000", "1800000001")), CodePayload, "different payments"},
		"B06d: another signature":                    {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", v1(t, "0xbf", "0xbe")), CodePayload, "different payments"},
		"B06d: one that is none, first":              {headersOf("PAYMENT-SIGNATURE", "!", "X-PAYMENT", v1Header), CodePayload, "PAYMENT-SIGNATURE is not base64"},
		"B06d: one that is none, second":             {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", "!"), CodePayload, "X-PAYMENT is not base64"},
		"B06d: an empty one beside":                  {headersOf("PAYMENT-SIGNATURE", v2, "X-PAYMENT", ""), CodePayload, "X-PAYMENT is empty"},
		"version 1 under both names":                 {headersOf("PAYMENT-SIGNATURE", v1Header, "X-PAYMENT", v1Header), CodeVersion, "PAYMENT-SIGNATURE is of x402 version 2"},
		"PAYMENT-SIGNATURE twice, the same":          {headersOf("PAYMENT-SIGNATURE", v2, "PAYMENT-SIGNATURE", v2), CodePayload, "PAYMENT-SIGNATURE more than once"},
		"X-PAYMENT twice, the same":                  {headersOf("X-PAYMENT", v1Header, "X-PAYMENT", v1Header), CodePayload, "X-PAYMENT more than once"},
		"X-PAYMENT twice beside PAYMENT-SIGNATURE":   {headersOf("X-PAYMENT", v1Header, "X-PAYMENT", v1Header, "PAYMENT-SIGNATURE", v2), CodePayload, "X-PAYMENT more than once"},
		"two in one line":                            {headersOf("X-PAYMENT", v1Header+", "+v1Header), CodePayload, "X-PAYMENT is not base64"},
		"B02c: an empty PAYMENT-SIGNATURE":           {headersOf("PAYMENT-SIGNATURE", ""), CodePayload, "PAYMENT-SIGNATURE is empty"},
		"B02c: an empty X-PAYMENT":                   {headersOf("X-PAYMENT", ""), CodePayload, "X-PAYMENT is empty"},
		"B11: 64 KiB in X-PAYMENT":                   {headersOf("X-PAYMENT", strings.Repeat("A", 64<<10)), CodePayload, "X-PAYMENT is longer than 16384 bytes"},
		"B12: a payment of version 2 in X-PAYMENT":   {headersOf("X-PAYMENT", v2), CodeVersion, "X-PAYMENT is of x402 version 1"},
		"B12: one of version 1 in PAYMENT-SIGNATURE": {headersOf("PAYMENT-SIGNATURE", v1Header), CodeVersion, "PAYMENT-SIGNATURE is of x402 version 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !Sent(test.headers) {
				t.Error("no payment was seen: the client would not learn that it did not arrive")
			}
			_, err := FromHeaders(test.headers)
			wantRefusal(t, err, call.PaymentMalformed, test.code, test.detail)
		})
	}
}

func TestSent_ARequestWithoutPaymentHeadersIsUnpaid(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.Header{
		"nothing": nil, "a name with an underscore": headersOf("PAYMENT_SIGNATURE", "x", "X_PAYMENT", "x"),
		"the answer's headers": headersOf("PAYMENT-RESPONSE", "x", "X-PAYMENT-RESPONSE", "x", "PAYMENT-REQUIRED", "x"),
	} {
		if Sent(h) {
			t.Errorf("%s counts as a payment", name)
		}
		if _, err := FromHeaders(h); reasonOf(err) != call.PaymentMalformed {
			t.Errorf("%s: FromHeaders = %v, want a refusal", name, err)
		}
	}
}
