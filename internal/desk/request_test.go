package desk

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/rs/zerolog"

	"market/internal/call"
	"market/internal/payment"
	"market/internal/refusal"
	"market/internal/wire"
)

// The golden payment of the protocol digest, as a seller's server sends it.
const (
	goldenSigned = `"payload":{"signature":"0xbf8545a00715e30fafafb560715291e0df679c515ec176d684ba56e794b2bf813995fd27c191691a22314c8feea0607609267369a318ad20b287bc00c684d0c51b",` +
		`"authorization":{"from":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8","to":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",` +
		`"value":"12345","validAfter":"0","validBefore":"1800000000","nonce":"0xabababababababababababababababababababababababababababababababab"}}`
	goldenTerms = `"asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","payTo":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",` +
		`"maxTimeoutSeconds":120,"extra":{"name":"USDC","version":"2"}}`
	goldenEntry = `{"scheme":"exact","network":"eip155:84532","amount":"12345",` + goldenTerms
	golden2     = `{"x402Version":2,"paymentPayload":{"x402Version":2,"accepted":` + goldenEntry + `,` + goldenSigned + `},"paymentRequirements":` + goldenEntry + `}`
	golden1     = `{"x402Version":1,"paymentPayload":{"x402Version":1,"scheme":"exact","network":"base-sepolia",` + goldenSigned + `},` +
		`"paymentRequirements":{"scheme":"exact","network":"base-sepolia","maxAmountRequired":"12345","resource":"https://shop.test/v1/echo",` +
		`"description":"","mimeType":"",` + goldenTerms + `}`
)

func TestDecode_ReadsBothVersions(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		version payment.Version
		network string
	}{golden1: {payment.V1, "base-sepolia"}, golden2: {payment.V2, "eip155:84532"}} {
		rq, err := decode([]byte(body))
		if err != nil {
			t.Errorf("v%d: %v", want.version, err)
			continue
		}
		p, q := rq.payload, rq.required
		if p.Version != want.version || p.Network != want.network || q.Network != want.network || q.Amount.String() != "12345" || q.MaxTimeoutSeconds != 120 ||
			q.PayTo != common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC") || p.From != common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8") {
			t.Errorf("v%d: %+v", want.version, rq)
		}
		if name, _ := q.Extra("name"); name != "USDC" {
			t.Errorf("v%d: extra.name is %q", want.version, name)
		}
	}
}

func TestDecode_RefusesWhatCanNotBeMeant(t *testing.T) {
	t.Parallel()
	in := func(golden, old, with string) string {
		if !strings.Contains(golden, old) {
			t.Fatalf("the golden body has no %s", old)
		}
		return strings.Replace(golden, old, with, 1)
	}
	deep := strings.Repeat(`{"a":`, wire.DepthMax) + `1` + strings.Repeat(`}`, wire.DepthMax)
	tests := map[string]struct {
		body string
		code payment.Code
	}{
		"nothing":                        {"", payment.CodePayload},
		"a page":                         {"<!doctype html><html><body>Bad gateway</body></html>", payment.CodePayload},
		"a list":                         {"[]", payment.CodePayload},
		"null":                           {"null", payment.CodePayload},
		"two documents":                  {golden2 + golden2, payment.CodePayload},
		"a half document":                {golden2[:len(golden2)/2], payment.CodePayload},
		"bytes of no encoding":           {in(golden2, "exact", "\xff"), payment.CodePayload},
		"half a surrogate pair":          {in(golden2, "exact", `\ud800`), payment.CodePayload},
		"a zero":                         {in(golden2, "exact", `\u0000`), payment.CodePayload},
		"a member twice":                 {in(golden2, `"value":"12345"`, `"value":"12345","value":"1"`), payment.CodePayload},
		"a member twice, once escaped":   {in(golden2, `"value":"12345"`, `"value":"12345","valu\u0065":"1"`), payment.CodePayload},
		"the terms twice":                {in(golden2, `"paymentRequirements":`, `"paymentRequirements":{},"paymentRequirements":`), payment.CodePayload},
		"too deep":                       {in(golden2, `"extra":{`, `"extra":{"deep":`+deep+`,`), payment.CodePayload},
		"no payment":                     {in(golden2, `"paymentPayload"`, `"paymentpayload"`), payment.CodePayload},
		"no terms":                       {in(golden2, `"paymentRequirements"`, `"paymentrequirements"`), payment.CodeRequirements},
		"terms as a list":                {in(golden2, `"paymentRequirements":`+goldenEntry, `"paymentRequirements":[`+goldenEntry+`]`), payment.CodeRequirements},
		"the payment in base64":          {`{"x402Version":2,"paymentHeader":"e30=","paymentRequirements":` + goldenEntry + `}`, payment.CodePayload},
		"no version":                     {in(golden2, `"x402Version":2,"paymentPayload"`, `"paymentPayload"`), payment.CodeVersion},
		"a version as text":              {strings.ReplaceAll(golden2, `"x402Version":2`, `"x402Version":"2"`), payment.CodeVersion},
		"a version with a point":         {strings.ReplaceAll(golden2, `"x402Version":2`, `"x402Version":2.0`), payment.CodeVersion},
		"a version to come":              {strings.ReplaceAll(golden2, `"x402Version":2`, `"x402Version":3`), payment.CodeVersion},
		"two versions":                   {in(golden2, `"x402Version":2`, `"x402Version":1`), payment.CodeVersion},
		"an amount with a point":         {in(golden2, `"paymentRequirements":{"scheme":"exact","network":"eip155:84532","amount":"12345"`, `"paymentRequirements":{"scheme":"exact","network":"eip155:84532","amount":"1.5"`), payment.CodeRequirements},
		"an amount as a number":          {in(golden1, `"maxAmountRequired":"12345"`, `"maxAmountRequired":12345`), payment.CodeRequirements},
		"version 1 with the member of 2": {in(golden1, `"maxAmountRequired"`, `"amount"`), payment.CodeRequirements},
		"terms with a CAIP-2 id in 1":    {in(golden1, `"paymentRequirements":{"scheme":"exact","network":"base-sepolia"`, `"paymentRequirements":{"scheme":"exact","network":"eip155:84532"`), payment.CodeNetwork},
		"a Permit2 payment":              {in(golden2, `"authorization":`, `"permit2Authorization":`), payment.CodePayloadKind},
		"a signature of 64 bytes":        {in(golden2, `c684d0c51b"`, `c684d0c5"`), payment.CodeSignatureFormat},
	}
	for name, tt := range tests {
		_, err := decode([]byte(tt.body))
		no, ok := errors.AsType[*refusal.Error](err)
		if !ok || no.Reason != call.PaymentMalformed || payment.CodeOfError(err) != tt.code || no.Detail == "" {
			t.Errorf("%s: %v, want payment_malformed, %s and a text", name, err, tt.code)
		}
	}
}

// A body that can not be read is answered with 400, as a no in the form of its route, and costs nothing beyond its limit.
func TestDesk_AnswersAHostileBodyWithANo(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	d := New(Config{DB: g.db, Keys: []Key{g.shopKey()}, Log: zerolog.Nop()})
	handler := d.Public().Handler
	for name, tt := range map[string]struct {
		body   string
		status int
	}{
		"a page":                  {"<script>alert(1)</script>", http.StatusBadRequest},
		"a member twice":          {`{"x402Version":2,"x402Version":2}`, http.StatusBadRequest},
		"nothing":                 {"", http.StatusBadRequest},
		"on the limit":            {`{"a":"` + strings.Repeat("a", bodyBytesMax-8) + `"}`, http.StatusBadRequest},
		"a byte over the limit":   {`{"a":"` + strings.Repeat("a", bodyBytesMax-7) + `"}`, http.StatusRequestEntityTooLarge},
		"a megabyte of brackets":  {strings.Repeat("[", 1<<20), http.StatusRequestEntityTooLarge},
		"brackets to the limit":   {strings.Repeat("[", bodyBytesMax), http.StatusBadRequest},
		"a number without an end": {`{"x402Version":` + strings.Repeat("9", 60_000) + `}`, http.StatusBadRequest},
	} {
		for route, no := range map[string]string{"/verify": `{"isValid":false,"invalidReason":"invalid_payload"`, "/settle": `{"success":false,"errorReason":"invalid_payload"`} {
			w := record(handler, http.MethodPost, route, tt.body)
			if text := w.Body.String(); w.Code != tt.status || !strings.HasPrefix(text, no) || strings.Contains(text, "script") || len(text) > 400 {
				t.Errorf("%s, %s: %d %.400s, want %d %s", name, route, w.Code, text, tt.status, no)
			}
		}
	}
}

// endless gives out bytes until it is not asked any more.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	for i := range p {
		p[i] = '['
	}
	return len(p), nil
}

func TestReadBody_ReadsOneByteOverTheLimitAndNoMore(t *testing.T) {
	t.Parallel()
	body := &endless{}
	if _, err := readBody(body); !errors.Is(err, errTooLarge) || body.read > 2*bodyBytesMax {
		t.Errorf("error %v after %d bytes, want that it is too large after about %d", err, body.read, bodyBytesMax)
	}
	for n, want := range map[int]error{bodyBytesMax - 1: nil, bodyBytesMax: nil, bodyBytesMax + 1: errTooLarge} {
		if got, err := readBody(io.LimitReader(&endless{}, int64(n))); !errors.Is(err, want) || err == nil && len(got) != n {
			t.Errorf("%d bytes: %d, %v, want %v", n, len(got), err, want)
		}
	}
}

func TestDesk_HasThreeRoutesAndNoOthers(t *testing.T) {
	t.Parallel()
	handler := New(Config{Log: zerolog.Nop()}).Public().Handler
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/", http.StatusNotFound},
		{http.MethodPost, "/facilitator/settle", http.StatusNotFound},
		{http.MethodPost, "/settle/", http.StatusNotFound},
		{http.MethodGet, "/settle", http.StatusMethodNotAllowed},
		{http.MethodPost, "/supported", http.StatusMethodNotAllowed},
		{http.MethodGet, "/readyz", http.StatusNotFound},
		{http.MethodGet, "/supported", http.StatusOK},
	} {
		w := record(handler, tt.method, tt.path, "")
		if w.Code != tt.want || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
			t.Errorf("%s %s: %d %s, want %d in JSON", tt.method, tt.path, w.Code, w.Body, tt.want)
		}
	}
}

// Whatever is sent: no panic, a refusal in words of ours, or a request whose every member is of its type.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		golden1, golden2, "", "[]", "<html>", `{"x402Version":2,"paymentPayload":{},"paymentRequirements":{}}`, golden2[:200],
		strings.Replace(golden2, "exact", `\ud800`, 1), strings.Replace(golden1, "12345", "1e5", 1), strings.Repeat("[", 100),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rq, err := decode(body)
		if err != nil {
			no, ok := errors.AsType[*refusal.Error](err)
			if !ok || no.Reason != call.PaymentMalformed || no.Detail == "" || len(no.Detail) > messageBytesMax || strings.ContainsAny(no.Detail, "<>\x00") {
				t.Fatalf("error = %v, want a refusal for payment_malformed in words of ours", err)
			}
			return
		}
		if v := rq.payload.Version; v != payment.V1 && v != payment.V2 {
			t.Errorf("version %d", v)
		}
		if rq.required.Network == "" || rq.payload.Network == "" || len(body) == 0 {
			t.Errorf("a request without a network: %+v", rq)
		}
	})
}
