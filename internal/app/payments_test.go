package app_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/payment"
)

// B01, B02, B07, B12, B21, B22, B43, B49, B50: what is no payment is told so, costs nothing and reaches nobody.
func TestPayment_WhatIsMalformedIsToldSoWithTheTerms(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "malformed", apptest.Works, nil)
	good := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))
	elder := w.SignV1(t, w.Payer(t, apptest.PriceUnits), w.Send(t, apptest.Ask(s.URL), ""), nil)
	bumped := apptest.Rewritten(t, elder, func(p map[string]any) { p["x402Version"] = 2 })
	set := func(path string, value any) string {
		return apptest.Rewritten(t, good, func(payload map[string]any) {
			at := payload
			names := strings.Split(path, ".")
			for _, name := range names[:len(names)-1] {
				at, _ = at[name].(map[string]any)
			}
			if last := names[len(names)-1]; value == nil {
				delete(at, last)
			} else {
				at[last] = value
			}
		})
	}
	for name, header := range map[string]string{
		"an empty header":                          "",
		"no base64":                                "!!!",
		"base64 of no JSON":                        "bm90LWpzb24=",
		"JSON and no base64":                       `{"x402Version":2}`,
		"JSON of another shape":                    apptest.Encode(t, map[string]any{"x402Version": 2, "note": "x"}),
		"a list":                                   apptest.Encode(t, []any{1}),
		"null":                                     apptest.Encode(t, nil),
		"x402 v1 with the version bumped":          apptest.Encode(t, map[string]any{"x402Version": 2, "scheme": "exact", "network": "base-sepolia", "payload": map[string]any{}}),
		"accepted is null":                         apptest.Rewritten(t, good, func(p map[string]any) { p["accepted"] = nil }),
		"no version":                               set("x402Version", nil),
		"version 3":                                set("x402Version", 3),
		"version 0":                                set("x402Version", 0),
		"version 1":                                set("x402Version", 1),
		"a negative version":                       set("x402Version", -1),
		"a version in quotes":                      set("x402Version", "2"),
		"a version with a point":                   strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(`{"x402Version":2.0,"accepted":{}}`)), "="),
		"a network of v1":                          set("accepted.network", "base-sepolia"),
		"a network with a leading zero":            set("accepted.network", "eip155:084532"),
		"an amount as a number":                    set("accepted.amount", 2000),
		"an amount with a leading zero":            set("accepted.amount", "02000"),
		"an amount with an exponent":               set("accepted.amount", "2e3"),
		"a negative value":                         set("payload.authorization.value", "-2000"),
		"minus zero":                               set("payload.authorization.value", "-0"),
		"a value with a plus sign":                 set("payload.authorization.value", "+2000"),
		"a value in hexadecimal":                   set("payload.authorization.value", "0x7d0"),
		"a value of 2^256":                         set("payload.authorization.value", "115792089237316195423570985008687907853269984665640564039457584007913129639936"),
		"a value of 400 digits":                    set("payload.authorization.value", strings.Repeat("9", 400)),
		"a time of 2^256":                          set("payload.authorization.validBefore", "115792089237316195423570985008687907853269984665640564039457584007913129639936"),
		"a nonce that is short":                    set("payload.authorization.nonce", "0x01"),
		"an address that is none":                  set("payload.authorization.from", "0x1234"),
		"an address with 0X":                       set("payload.authorization.to", "0X"+strings.Repeat("11", 20)),
		"no authorization":                         set("payload.authorization", nil),
		"no signature":                             set("payload.signature", nil),
		"a compact signature":                      set("payload.signature", "0x"+strings.Repeat("11", 64)),
		"a signature of 4097 bytes":                set("payload.signature", "0x"+strings.Repeat("11", 4097)),
		"a wrapper of ERC-6492 around nothing":     set("payload.signature", "0x"+strings.Repeat("11", 66)+strings.Repeat("6492", 16)),
		"a signature whose v is no v":              set("payload.signature", "0x"+strings.Repeat("11", 64)+"1d"),
		"a header that is too long":                set("padding", strings.Repeat("x", 20_000)),
		"a member that occurs twice":               base64.StdEncoding.EncodeToString([]byte(`{"x402Version":2,"x402Version":2}`)),
		"JSON that nests deep":                     base64.StdEncoding.EncodeToString([]byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))),
		"a second document behind the first":       base64.StdEncoding.EncodeToString([]byte(`{"x402Version":2}{"x402Version":2}`)),
		"a resource that is no object":             set("resource", "https://market.example/"),
		"a timeout that is a string":               set("accepted.maxTimeoutSeconds", "120"),
		"a version of 64 digits":                   base64.StdEncoding.EncodeToString([]byte(`{"x402Version":2` + strings.Repeat("0", 63) + `}`)),
		"whitespace before base64 of a good start": " \t" + good[:40],
	} {
		// Written by hand, because a client library leaves an empty header out.
		a := w.SendBytes(t, http.MethodPost, "/s/malformed/work", `{"n":1}`, payment.HeaderSignature+": "+header)
		expect(t, name, a, http.StatusBadRequest, "payment_malformed")
		if apptest.Decode(t, a.Header.Get(payment.HeaderRequired))["error"] == "Payment required" {
			t.Errorf("%s: the challenge does not say what is wrong", name)
		}
		if a.JSON["charged"] != false || a.JSON["party"] != "caller" {
			t.Errorf("%s: charged %v, party %v", name, a.JSON["charged"], a.JSON["party"])
		}
		for _, leak := range []string{"json:", "unmarshal", "invalid character", "illegal base64", "goroutine", "strconv"} {
			if strings.Contains(string(a.Body), leak) {
				t.Errorf("%s: the answer repeats a library: %s", name, a.Body)
			}
		}
	}
	for name, headers := range map[string][]string{
		"a payment of v2 in X-PAYMENT":         {"X-PAYMENT: " + good},
		"the same in small print":              {"x-payment: " + good},
		"a payment of v1 in PAYMENT-SIGNATURE": {"PAYMENT-SIGNATURE: " + elder},
		"a payment of v1 under both names":     {"X-PAYMENT: " + elder, "PAYMENT-SIGNATURE: " + elder},
		"two payments":                         {"X-PAYMENT: " + elder, "PAYMENT-SIGNATURE: " + good},
		"one payment, and one that is none":    {"X-PAYMENT: " + apptest.Encode(t, map[string]any{"x402Version": 1}), "PAYMENT-SIGNATURE: " + good},
		"PAYMENT-SIGNATURE twice":              {"PAYMENT-SIGNATURE: " + good, "Payment-Signature: " + good},
		"X-PAYMENT twice":                      {"X-PAYMENT: " + elder, "X-Payment: " + elder},
		"X-PAYMENT twice in one line":          {"X-PAYMENT: " + elder + ", " + elder},
		"an empty X-PAYMENT":                   {"X-PAYMENT:"},
		"v2's shape as version 1":              {"X-PAYMENT: " + set("x402Version", 1)},
		"v1's shape as version 2":              {"X-PAYMENT: " + bumped},
		"v1 with a network of v2":              {"X-PAYMENT: " + apptest.Rewritten(t, elder, func(p map[string]any) { p["network"] = "eip155:84532" })},
		"v1 with a network in capitals":        {"X-PAYMENT: " + apptest.Rewritten(t, elder, func(p map[string]any) { p["network"] = "Base-Sepolia" })},
	} {
		a := w.SendBytes(t, http.MethodPost, "/s/malformed/work", `{"n":1}`, headers...)
		expect(t, name, a, http.StatusBadRequest, "payment_malformed")
		if a.Header.Get(payment.HeaderRequired) == "" {
			t.Errorf("%s: the terms are missing", name)
		}
	}
	untouched(t, w, s)
}

// untouched says that nothing was claimed, kept or asked.
func untouched(t *testing.T, w *apptest.World, services ...*apptest.Service) {
	t.Helper()
	if rows := w.Rows(t); rows.Calls != 0 || rows.Deliveries != 0 {
		t.Errorf("%d claims and %d deliveries were written", rows.Calls, rows.Deliveries)
	}
	for _, s := range services {
		if s.Asked() != 0 || s.Probed() != 0 {
			t.Errorf("service %s was asked %d and probed %d times", s.Slug, s.Asked(), s.Probed())
		}
	}
	if got := w.Balance(t, w.Treasury); got != 0 {
		t.Errorf("the treasury holds %d", got)
	}
}

// B14, B15, B17, B21: the listing is the only source of terms, whatever the payer signed.
func TestPayment_OnlyOurTermsPayForACall(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "terms", apptest.Works, nil)
	cheap := w.List(t, "cheap", apptest.Works, map[string]any{"price_usd": "0.001"})
	twin := w.List(t, "twin", apptest.Works, nil)
	payer := w.Payer(t, 100*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	stranger := "0x00000000000000000000000000000000000000a1"
	signed := func(change func(accepted map[string]any)) string {
		return w.Sign(t, payer, apptest.Changed(t, terms, change))
	}
	extra := func(value any) string {
		return signed(func(a map[string]any) {
			if value == nil {
				delete(a, "extra")
			} else {
				a["extra"] = value
			}
		})
	}
	with := func(header, path, value string) string {
		return apptest.Rewritten(t, header, func(p map[string]any) {
			inner, _ := p["payload"].(map[string]any)
			authorization, _ := inner["authorization"].(map[string]any)
			authorization[path] = value
		})
	}
	good := w.Sign(t, payer, terms)

	for name, tt := range map[string]struct{ header, code, word string }{
		"a lower price of the payer's own":        {signed(func(a map[string]any) { a["amount"] = "1" }), "payment_mismatch", "invalid_payment_requirements"},
		"more than the price":                     {signed(func(a map[string]any) { a["amount"] = "2001" }), "payment_mismatch", "invalid_payment_requirements"},
		"somebody else's address":                 {signed(func(a map[string]any) { a["payTo"] = stranger }), "payment_mismatch", "invalid_payment_requirements"},
		"another asset":                           {signed(func(a map[string]any) { a["asset"] = stranger }), "payment_mismatch", "invalid_network"},
		"another network":                         {signed(func(a map[string]any) { a["network"] = "eip155:8453" }), "payment_mismatch", "invalid_network"},
		"a longer time":                           {signed(func(a map[string]any) { a["maxTimeoutSeconds"] = 3601 }), "payment_mismatch", "invalid_payment_requirements"},
		"another scheme":                          {signed(func(a map[string]any) { a["scheme"] = "upto" }), "payment_mismatch", "unsupported_scheme"},
		"no extra":                                {extra(nil), "payment_mismatch", "invalid_exact_evm_missing_eip712_domain"},
		"an empty extra":                          {extra(map[string]any{}), "payment_mismatch", "invalid_exact_evm_missing_eip712_domain"},
		"another token's name":                    {extra(map[string]any{"name": "X", "version": "2", "paymentFlow": "upfront"}), "payment_mismatch", "invalid_exact_evm_token_name_mismatch"},
		"another token's version":                 {extra(map[string]any{"name": "USDC", "version": "9", "paymentFlow": "upfront"}), "payment_mismatch", "invalid_exact_evm_token_version_mismatch"},
		"a payment for a cheaper service":         {w.Sign(t, payer, w.Challenge(t, apptest.Ask(cheap.URL))), "payment_mismatch", "invalid_payment_requirements"},
		"a payment for another at the same price": {w.Sign(t, payer, w.Challenge(t, apptest.Ask(twin.URL))), "payment_mismatch", "invalid_payment_requirements"},
		"a value changed after signing":           {with(good, "value", "1"), "payment_invalid", "invalid_exact_evm_payload_authorization_value_mismatch"},
		"a recipient changed after signing":       {with(good, "to", stranger), "payment_invalid", "invalid_exact_evm_recipient_mismatch"},
		"a payer changed after signing":           {with(good, "from", stranger), "payment_invalid", "invalid_exact_evm_signature"},
		"a signature of 66 bytes":                 {apptest.WithSignature(t, good, bytes.Repeat([]byte{1}, 66)), "payment_invalid", "invalid_exact_evm_signature"},
		"our price agreed to and less signed": {apptest.Rewritten(t, signed(func(a map[string]any) { a["amount"] = "1" }), func(p map[string]any) {
			accepted, _ := p["accepted"].(map[string]any)
			accepted["amount"] = "2000"
		}), "payment_invalid", "invalid_exact_evm_payload_authorization_value_mismatch"},
		"our address agreed to and another signed": {apptest.Rewritten(t, signed(func(a map[string]any) { a["payTo"] = stranger }), func(p map[string]any) {
			accepted, _ := p["accepted"].(map[string]any)
			accepted["payTo"] = w.Treasury.Hex()
		}), "payment_invalid", "invalid_exact_evm_recipient_mismatch"},
		"an end in a year": {apptest.Rewritten(t, signed(func(a map[string]any) { a["maxTimeoutSeconds"] = 31_536_000 }), func(p map[string]any) {
			accepted, _ := p["accepted"].(map[string]any)
			accepted["maxTimeoutSeconds"] = 120
		}), "payment_invalid", "invalid_exact_evm_payload_authorization_valid_before"},
		"an end in a moment": {apptest.Rewritten(t, signed(func(a map[string]any) { a["maxTimeoutSeconds"] = 5 }), func(p map[string]any) {
			accepted, _ := p["accepted"].(map[string]any)
			accepted["maxTimeoutSeconds"] = 120
		}), "payment_invalid", "invalid_exact_evm_payload_authorization_valid_before"},
	} {
		a := w.Send(t, apptest.Ask(s.URL), tt.header)
		expect(t, name, a, http.StatusPaymentRequired, tt.code)
		challenge := apptest.Decode(t, a.Header.Get(payment.HeaderRequired))
		if challenge["error"] != tt.word || a.JSON["error"] != string(payment.Code(tt.word).In(payment.V1)) {
			t.Errorf("%s: x402's word is %v in the header and %v in the body, want %s", name, challenge["error"], a.JSON["error"], tt.word)
		}
		if first(challenge["accepts"])["amount"] != "2000" {
			t.Errorf("%s: the challenge offers %v", name, challenge["accepts"])
		}
	}
	untouched(t, w, s, cheap, twin)
}

// B04, B18, B21, B24: what differs in spelling only is the payment that was asked for.
func TestPayment_SpellingsOfOnePaymentAreOnePayment(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "lenient", apptest.Works, nil)
	payer := w.Payer(t, 100*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	fresh := func() string { return w.Sign(t, payer, terms) }
	accepted := func(member string, spell func(string) string) string {
		return w.Sign(t, payer, apptest.Changed(t, terms, func(a map[string]any) {
			text, _ := a[member].(string)
			a[member] = spell(text)
		}))
	}
	upper := func(s string) string { return "0x" + strings.ToUpper(s[2:]) }
	swapped := func(s string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case 'a' <= r && r <= 'f':
				return r - 'a' + 'A'
			case 'A' <= r && r <= 'F':
				return r - 'A' + 'a'
			}
			return r
		}, s)
	}
	resource := func(url string) string {
		return apptest.Rewritten(t, fresh(), func(p map[string]any) { p["resource"] = map[string]any{"url": url} })
	}
	raw := func(dialect *base64.Encoding) string {
		bytes, err := base64.StdEncoding.DecodeString(fresh())
		if err != nil {
			t.Fatal(err)
		}
		return dialect.EncodeToString(bytes)
	}
	for name, header := range map[string]string{
		"as it was offered":                      fresh(),
		"standard base64 without padding":        raw(base64.RawStdEncoding),
		"base64 for URLs":                        raw(base64.URLEncoding),
		"base64 for URLs without padding":        raw(base64.RawURLEncoding),
		"our address in small letters":           accepted("payTo", strings.ToLower),
		"our address in capitals":                accepted("payTo", upper),
		"our address with a wrong checksum":      accepted("payTo", swapped),
		"the asset in small letters":             accepted("asset", strings.ToLower),
		"the asset in capitals":                  accepted("asset", upper),
		"the resource with a query":              resource(s.URL + "?q=1&b=2"),
		"the resource with a slash at the end":   resource(s.URL + "/"),
		"the resource with escapes of letters":   resource(strings.Replace(s.URL, "work", "%77ork", 1)),
		"no resource":                            apptest.Rewritten(t, fresh(), func(p map[string]any) { delete(p, "resource") }),
		"members that we do not know":            apptest.Rewritten(t, fresh(), func(p map[string]any) { p["memo"] = map[string]any{"x": 1} }),
		"an extra with members of the payer own": w.Sign(t, payer, apptest.Changed(t, terms, func(a map[string]any) { a["extra"].(map[string]any)["memo"] = "mine" })), //nolint:forcetypeassert // our own terms
	} {
		if a := w.Send(t, apptest.Ask(s.URL), header); a.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
}
