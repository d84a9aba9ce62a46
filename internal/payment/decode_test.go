package payment

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/refusal"
	"market/internal/wire"
)

func reasonOf(err error) call.Reason {
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		return no.Reason
	}
	return ""
}

func TestDecode_ReadsTheExampleOfTheProtocol(t *testing.T) {
	t.Parallel()
	p := decoded(t, header(goldenPayload))
	if p.From != common.HexToAddress(goldenPayer) || p.To != common.HexToAddress(goldenTreasury) || p.Value.String() != "12345" ||
		p.ValidAfter.String() != "0" || p.ValidBefore.String() != "1800000000" || p.Nonce != common.HexToHash(goldenNonce) {
		t.Errorf("authorization = %+v", p)
	}
	if common.Bytes2Hex(p.Signature[:]) != goldenSignature[2:] {
		t.Errorf("signature = %x, want %s", p.Signature, goldenSignature)
	}
	if p.ResourceURL != goldenResource || p.Accepted.Amount.String() != "12345" || p.Accepted.MaxTimeoutSeconds != 120 {
		t.Errorf("resource, accepted = %q, %+v", p.ResourceURL, p.Accepted)
	}
}

func TestDecode_TakesWhatHonestClientsWrite(t *testing.T) {
	t.Parallel()
	plain := decoded(t, header(goldenPayload))
	// Three bytes that need all of + and / in base64, where no rule looks: in a member that nobody knows.
	odd := strings.Replace(goldenPayload, `{"x402Version"`, `{"note":"~~~???ÿÿÿ>>>","x402Version"`, 1)
	std := base64.StdEncoding.EncodeToString([]byte(odd))
	if !strings.ContainsAny(std, "+") || !strings.ContainsAny(std, "/") || !strings.HasSuffix(std, "=") {
		t.Fatalf("the example has to need +, / and padding: %s", std)
	}
	tests := map[string]string{
		"B04: standard alphabet, padded":   std,
		"B04: standard alphabet, unpadded": base64.RawStdEncoding.EncodeToString([]byte(odd)),
		"B04: URL alphabet, padded":        base64.URLEncoding.EncodeToString([]byte(odd)),
		"B04: URL alphabet, unpadded":      base64.RawURLEncoding.EncodeToString([]byte(odd)),
		"B24: lower-case payer":            golden(t, goldenPayer, strings.ToLower(goldenPayer)),
		"B24: upper-case payer":            golden(t, goldenPayer, "0x"+strings.ToUpper(goldenPayer[2:])),
		"B24: wrong checksum":              golden(t, goldenPayer, "0x70997970c51812DC3A010C7d01b50e0d17dc79C8"),
		"B25: v is 0":                      golden(t, goldenSignature[len(goldenSignature)-6:], "d0c500"),
		"null resource and extensions":     golden(t, `"extensions":{"payment-identifier":{"info":{"required":false,"id":"pay_0123456789abcdef"},"schema":{"type":"object"}}}`, `"extensions":null`),
		"unknown members of accepted":      golden(t, `"scheme":"exact"`, `"scheme":"exact","more":[1,{"a":null}]`),
	}
	for name, h := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := decoded(t, h)
			if p.From != plain.From || p.Nonce != plain.Nonce || p.Signature != plain.Signature || p.Accepted.Asset != plain.Accepted.Asset {
				t.Errorf("payment = %+v, want %+v", p, plain)
			}
		})
	}
	for name, with := range map[string]string{"null": `"resource":null`, "without a url": `"resource":{}`} {
		h := golden(t, `"resource":{"url":"`+goldenResource+`","description":"Echo service","mimeType":"application/json"}`, with)
		if p := decoded(t, h); p.ResourceURL != "" {
			t.Errorf("resource %s: url = %q, want none", name, p.ResourceURL)
		}
	}
}

func TestDecode_RefusesWithAFixedText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 78) // above 2^256
	tests := map[string]struct {
		header string
		code   Code
		detail string
	}{
		"B01: JSON of another kind":                     {header(`{"x402Version":2,"note":"leak-me"}`), CodePayload, "accepted must be an object"},
		"B02a: base64 of no JSON":                       {"bGVhay1tZQ==", CodePayload, "not base64 of JSON"},
		"B02b: no base64":                               {"leak-me!!!", CodePayload, "not base64"},
		"B02c: empty":                                   {"", CodePayload, "is empty"},
		"line break in base64":                          {header(goldenPayload)[:8] + "\n" + header(goldenPayload)[8:], CodePayload, "not base64"},
		"both alphabets at once":                        {"+/-_", CodePayload, "not base64"},
		"B07: v1 shape with the version of v2":          {header(`{"x402Version":2,"scheme":"exact","network":"base","payload":{}}`), CodePayload, "accepted must be an object"},
		"B07: accepted is null":                         {header(`{"x402Version":2,"accepted":null,"payload":{}}`), CodePayload, "accepted must be an object"},
		"B11: 64 KiB":                                   {strings.Repeat("A", 64<<10), CodePayload, "longer than 16384 bytes"},
		"one byte over the cap":                         {strings.Repeat("A", headerBytesReadMax+1), CodePayload, "longer than 16384 bytes"},
		"on the cap it is decoded":                      {strings.Repeat("A", headerBytesReadMax), CodePayload, "not base64 of JSON"},
		"B12: no version":                               {golden(t, `"x402Version":2,`, ``), CodeVersion, "the number 2"},
		"B12: version 3":                                {golden(t, `"x402Version":2,`, `"x402Version":3,`), CodeVersion, "the number 2"},
		"B12: version 0":                                {golden(t, `"x402Version":2,`, `"x402Version":0,`), CodeVersion, "the number 2"},
		"B12: version 1":                                {golden(t, `"x402Version":2,`, `"x402Version":1,`), CodeVersion, "the number 2"},
		"B12: version as text":                          {golden(t, `"x402Version":2,`, `"x402Version":"2",`), CodeVersion, "the number 2"},
		"B12: version 2.0":                              {golden(t, `"x402Version":2,`, `"x402Version":2.0,`), CodeVersion, "the number 2"},
		"B12: version 2e0":                              {golden(t, `"x402Version":2,`, `"x402Version":2e0,`), CodeVersion, "the number 2"},
		"B12: version -1":                               {golden(t, `"x402Version":2,`, `"x402Version":-1,`), CodeVersion, "the number 2"},
		"the version in another case is no version":     {golden(t, `"x402Version":2,`, `"X402Version":2,`), CodeVersion, "the number 2"},
		"B22: v1 network name":                          {golden(t, `eip155:84532`, `base`), CodeNetwork, "CAIP-2"},
		"B22: v1 network name in capitals":              {golden(t, `eip155:84532`, `Base`), CodeNetwork, "CAIP-2"},
		"B22: chain id with a leading zero":             {golden(t, `eip155:84532`, `eip155:084532`), CodeNetwork, "CAIP-2"},
		"B24: 0X prefix":                                {golden(t, goldenPayer, "0X"+goldenPayer[2:]), CodePayload, "payload.authorization.from must be an address"},
		"address without prefix":                        {golden(t, goldenPayer, goldenPayer[2:]+"00"), CodePayload, "payload.authorization.from must be an address"},
		"address of 19 bytes":                           {golden(t, goldenPayer, goldenPayer[:40]), CodePayload, "payload.authorization.from must be an address"},
		"B25: v is 29":                                  {golden(t, "d0c51b", "d0c51d"), CodeSignatureFormat, "27 or 28"},
		"B25: v is 37":                                  {golden(t, "d0c51b", "d0c525"), CodeSignatureFormat, "27 or 28"},
		"B25: v is 255":                                 {golden(t, "d0c51b", "d0c5ff"), CodeSignatureFormat, "27 or 28"},
		"s in the upper half":                           {golden(t, goldenSignature, goldenSignature[:66]+"ff"+goldenSignature[68:]), CodeSignatureFormat, "lower half"},
		"B28, B30: a wrapped contract wallet signature": {golden(t, goldenSignature, "0x"+strings.Repeat("ab", 200)+strings.Repeat("6492", 16)), CodeSignatureFormat, "contract wallets are not supported yet"},
		"B35: 64 bytes":                                 {golden(t, goldenSignature, goldenSignature[:130]), CodeSignatureFormat, "65 bytes"},
		"B35: 63 bytes":                                 {golden(t, goldenSignature, goldenSignature[:128]), CodeSignatureFormat, "65 bytes"},
		"B35: 66 bytes":                                 {golden(t, goldenSignature, goldenSignature+"00"), CodeSignatureFormat, "65 bytes"},
		"B35: nothing":                                  {golden(t, goldenSignature, ""), CodeSignatureFormat, "65 bytes"},
		"signature of no hexadecimal":                   {golden(t, goldenSignature, "0x"+strings.Repeat("zz", 65)), CodeSignatureFormat, "hexadecimal"},
		"B43: value above 2^256":                        {golden(t, `"value":"12345"`, `"value":"`+long+`"`), CodePayload, "payload.authorization.value"},
		"B43: validBefore above 2^256":                  {golden(t, `"1800000000"`, `"`+long+`"`), CodePayload, "payload.authorization.validBefore"},
		"B43: validAfter of 401 digits":                 {golden(t, `"validAfter":"0"`, `"validAfter":"1`+strings.Repeat("0", 400)+`"`), CodePayload, "payload.authorization.validAfter"},
		"B43: nonce of 33 bytes":                        {golden(t, goldenNonce, goldenNonce+"ab"), CodePayload, "payload.authorization.nonce"},
		"B43: a decimal nonce":                          {golden(t, goldenNonce, "7"), CodePayload, "payload.authorization.nonce"},
		"B49: minus one":                                {golden(t, `"value":"12345"`, `"value":"-1"`), CodePayload, "payload.authorization.value"},
		"B49: minus zero":                               {golden(t, `"value":"12345"`, `"value":"-0"`), CodePayload, "payload.authorization.value"},
		"B49: plus":                                     {golden(t, `"value":"12345"`, `"value":"+12345"`), CodePayload, "payload.authorization.value"},
		"B50: leading zero":                             {golden(t, `"value":"12345"`, `"value":"012345"`), CodePayload, "payload.authorization.value"},
		"B50: exponent":                                 {golden(t, `"value":"12345"`, `"value":"1e4"`), CodePayload, "payload.authorization.value"},
		"B50: hexadecimal":                              {golden(t, `"value":"12345"`, `"value":"0x3039"`), CodePayload, "payload.authorization.value"},
		"B50: space":                                    {golden(t, `"value":"12345"`, `"value":" 12345"`), CodePayload, "payload.authorization.value"},
		"B50: line break at the end":                    {golden(t, `"value":"12345"`, `"value":"12345\n"`), CodePayload, "payload.authorization.value"},
		"B50: fraction":                                 {golden(t, `"value":"12345"`, `"value":"12345.0"`), CodePayload, "payload.authorization.value"},
		"B50: empty":                                    {golden(t, `"value":"12345"`, `"value":""`), CodePayload, "payload.authorization.value"},
		"B50: full-width digits":                        {golden(t, `"value":"12345"`, `"value":"１２３４５"`), CodePayload, "payload.authorization.value"},
		"B50: a JSON number":                            {golden(t, `"value":"12345"`, `"value":12345`), CodePayload, "payload.authorization.value must be a string"},
		"B50: accepted.amount too":                      {golden(t, `"amount":"12345"`, `"amount":"012345"`), CodePayload, "accepted.amount"},
		"the timeout as text":                           {golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":"120"`), CodePayload, "accepted.maxTimeoutSeconds"},
		"the timeout as a fraction":                     {golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":120.0`), CodePayload, "accepted.maxTimeoutSeconds"},
		"the timeout with an exponent":                  {golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":12e1`), CodePayload, "accepted.maxTimeoutSeconds"},
		"the timeout below zero":                        {golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":-120`), CodePayload, "accepted.maxTimeoutSeconds"},
		"the timeout as a giant":                        {golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":1e999999999`), CodePayload, "accepted.maxTimeoutSeconds"},
		"the timeout past what is counted":              {golden(t, `"maxTimeoutSeconds":120`, `"maxTimeoutSeconds":18446744073709551736`), CodePayload, "accepted.maxTimeoutSeconds"},
		"no timeout":                                    {golden(t, `"maxTimeoutSeconds":120,`, ``), CodePayload, "accepted.maxTimeoutSeconds"},
		"an address as a list":                          {golden(t, `"asset":"`+goldenAsset+`"`, `"asset":["`+goldenAsset+`"]`), CodePayload, "accepted.asset must be a string"},
		"half of a surrogate pair":                      {golden(t, `Echo service`, `\ud83d`), CodePayload, "UTF-8"},
		"an escaped zero":                               {golden(t, `Echo service`, `\u0000`), CodePayload, "UTF-8"},
		"a byte order mark":                             {header("\ufeff" + goldenPayload), CodePayload, "UTF-8"},
		"a payment of another kind":                     {golden(t, `"authorization":`, `"permit2Authorization":`), CodePayloadKind, "EIP-3009"},
		"a member twice at the top":                     {golden(t, `{"x402Version":2,`, `{"x402Version":2,"x402Version":2,`), CodePayload, "occurs twice"},
		"a member twice inside":                         {golden(t, `"value":"12345"`, `"value":"1","value":"12345"`), CodePayload, "occurs twice"},
		"a member twice, once escaped":                  {golden(t, `"value":"12345"`, `"\u0076alue":"1","value":"12345"`), CodePayload, "occurs twice"},
		"a member twice where nobody looks":             {golden(t, `"type":"object"`, `"type":"object","type":"object"`), CodePayload, "occurs twice"},
		"nested one level too deep":                     {golden(t, `"type":"object"`, `"type":`+nest(wire.DepthMax-3)), CodePayload, "64 levels"},
		"not UTF-8":                                     {golden(t, `Echo service`, "Echo \xff"), CodePayload, "UTF-8"},
		"two documents":                                 {header(goldenPayload + `{}`), CodePayload, "not base64 of JSON"},
		"an array":                                      {header(`[]`), CodePayload, "not an object"},
		"resource is text":                              {golden(t, `"resource":{"url":"`+goldenResource+`","description":"Echo service","mimeType":"application/json"}`, `"resource":"leak-me"`), CodePayload, "resource must be an object"},
		"resource.url is a number":                      {golden(t, `"url":"`+goldenResource+`"`, `"url":7`), CodePayload, "resource.url must be a string"},
		"extra is an array":                             {golden(t, `"extra":{"name":"USDC","version":"2","paymentFlow":"upfront"}`, `"extra":[]`), CodePayload, "accepted.extra must be an object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Decode(test.header)
			wantRefusal(t, err, call.PaymentMalformed, test.code, test.detail)
			if err != nil && strings.Contains(err.Error(), "leak-me") {
				t.Errorf("the text repeats what was sent: %v", err)
			}
		})
	}
}

func nest(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func TestDecode_NestingOnTheLimitIsRead(t *testing.T) {
	t.Parallel()
	decoded(t, golden(t, `"type":"object"`, `"type":`+nest(wire.DepthMax-4))) // the payment, extensions, its key and schema are four levels
}
