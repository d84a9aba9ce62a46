package app_test

import (
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/payment"
)

// onTheWire sends a request as a client that neither asks for an encoding nor reads one, and returns the answer as it came.
func onTheWire(t *testing.T, a apptest.Asking, paymentHeader string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), a.Method, a.URL, strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	if a.Header != nil {
		r.Header = a.Header.Clone()
	}
	r.Header.Set(payment.HeaderSignature, paymentHeader)
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// B95, B101: what was paid for goes to the service, and what it made comes back, bit for bit and under its own name.
func TestBodies_PassBitForBit(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	k := newKeeper(t)
	url, _ := k.list(t, w, "exact", map[string]any{})
	payer := w.Payer(t, 20*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Asking{Method: http.MethodPost, URL: url})
	binary := strings.Repeat("\x00\xff\r\n", 1<<18) // as much as may be sent
	for what, tt := range map[string]struct {
		sent, sentAs string
		header       http.Header
		body         string
	}{
		"JSON":                       {`{"a":1}`, "", http.Header{"Content-Type": {"application/json"}}, `{"b":2}`},
		"nothing":                    {"", "", nil, ""},
		"a MB of anything":           {binary, "", http.Header{"Content-Type": {"application/octet-stream"}}, binary},
		"gzip, both ways":            {apptest.Gzip("question"), "gzip", http.Header{"Content-Encoding": {"gzip"}, "Content-Type": {"text/plain"}}, apptest.Gzip("answer")},
		"encodings nobody knows":     {"?", "x-own, br", http.Header{"Content-Encoding": {"x-own", "br"}}, "!"},
		"a page without a type":      {"", "", nil, "<html><script>alert(1)</script></html>"},
		"a charset of its own":       {"", "", http.Header{"Content-Type": {"text/html; charset=iso-8859-1"}}, "caf\xe9"},
		"a trailer":                  {"", "", http.Header{"Trailer": {"X-Sum"}, "X-Sum": {"1"}}, "sum"},
		"its length, said by itself": {"", "", http.Header{"Content-Length": {"5"}}, "hello"},
	} {
		got := make(chan [2]string, 1)
		k.do(func(rw http.ResponseWriter, r *http.Request) {
			sent, _ := io.ReadAll(r.Body)
			got <- [2]string{string(sent), r.Header.Get("Content-Encoding")}
			rw.Header()["Content-Type"] = nil // net/http would guess one
			for name, values := range tt.header {
				rw.Header()[name] = values
			}
			_, _ = io.WriteString(rw, tt.body)
		})
		ask := apptest.Asking{Method: http.MethodPost, URL: url, Body: tt.sent, Header: http.Header{}}
		if tt.sentAs != "" {
			ask.Header.Set("Content-Encoding", tt.sentAs)
		}
		response, body := onTheWire(t, ask, w.Sign(t, payer, terms))
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %.300s", what, response.StatusCode, body)
			continue
		}
		if asked := <-got; sha256.Sum256([]byte(asked[0])) != sha256.Sum256([]byte(tt.sent)) || asked[1] != tt.sentAs {
			t.Errorf("%s: the service got %d bytes as %q, want %d as %q", what, len(asked[0]), asked[1], len(tt.sent), tt.sentAs)
		}
		if body != tt.body {
			t.Errorf("%s: the caller got %d bytes, want %d", what, len(body), len(tt.body))
		}
		for _, name := range []string{"Content-Type", "Content-Encoding"} {
			want := strings.Join(tt.header[name], ", ")
			if values := response.Header.Values(name); strings.Join(values, ", ") != want {
				t.Errorf("%s: %s is %q, want %q", what, name, values, want)
			}
		}
		if length := response.Header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(tt.body)) {
			t.Errorf("%s: the length is %s, want %d", what, length, len(tt.body))
		}
		if response.Header.Get("X-Sum")+response.Trailer.Get("X-Sum") != "" {
			t.Errorf("%s: a trailer of the service came through", what)
		}
	}
}

// B101: what can't be sent on as it is, or can't be checked, is refused while the payment is still unused.
func TestBodies_WhatCannotBeTakenIsRefusedBeforeMoneyMoves(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	k := newKeeper(t)
	open, _ := k.list(t, w, "open", map[string]any{})
	checked := w.List(t, "checked", apptest.Works, nil)
	payer := w.Payer(t, apptest.PriceUnits)
	gzipped := http.Header{"Content-Encoding": {"gzip"}}
	for what, tt := range map[string]struct {
		url, body string
		header    http.Header
		status    int
		code      string
	}{
		"a byte too much":                   {open, strings.Repeat("a", 1<<20+1), nil, http.StatusRequestEntityTooLarge, "input_too_large"},
		"packed input that is checked":      {checked.URL, apptest.Gzip(`{"n":1}`), gzipped, http.StatusUnprocessableEntity, "input_invalid"},
		"plain input that says it is gzip":  {checked.URL, `{"n":1}`, gzipped, http.StatusUnprocessableEntity, "input_invalid"},
		"an encoding that cannot be read":   {open, "x", http.Header{"Content-Encoding": {"g zip"}}, http.StatusUnprocessableEntity, "input_invalid"},
		"an encoding that is said to be ''": {open, "x", http.Header{"Content-Encoding": {""}}, http.StatusUnprocessableEntity, "input_invalid"},
	} {
		ask := apptest.Asking{Method: http.MethodPost, URL: tt.url, Body: tt.body, Header: tt.header}
		expect(t, what, w.Pay(t, payer, w.Challenge(t, apptest.Asking{Method: http.MethodPost, URL: tt.url}), ask), tt.status, tt.code)
	}
	if w.Balance(t, payer.Address()) != apptest.PriceUnits || checked.Asked() != 0 || k.shown("/work", "Market-Call") != "" {
		t.Error("money moved, or a service was asked")
	}
	if a := w.Pay(t, payer, w.Challenge(t, apptest.Ask(checked.URL)), apptest.Asking{Method: http.MethodPost, URL: checked.URL, Body: `{"n":1}`,
		Header: http.Header{"Content-Encoding": {"identity"}}}); a.Status != http.StatusOK || slices.Contains(a.Header["Market-Outcome"], "refused") {
		t.Errorf("plain input: %d %s", a.Status, a.Body)
	}
}
