package caller_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/caller"
	"market/internal/payment"
)

func TestClient_Do_PaysOnceAndBringsTheAnswer(t *testing.T) {
	t.Parallel()
	s := newShop(t, served, offerOf(t, usdc, 2000))
	result, err := client(t).Do(t.Context(), caller.Request{Method: http.MethodPost, URL: s.URL + "/echo?q=1",
		Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"a":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if string(result.Body) != "echo" || result.Status != http.StatusOK || result.Ending() != caller.Served || result.CallID != "call-1" {
		t.Errorf("result = %+v", result)
	}
	if result.Payment == nil || result.Payment.Transaction != "0xabc" || result.PaymentHeader == "" {
		t.Errorf("payment = %+v, header %q", result.Payment, result.PaymentHeader)
	}
	if q := result.Quote; q == nil || q.USD.String() != "0.002" || q.PayTo != treasury || q.Description != "Echo [31m" {
		t.Errorf("quote = %+v", q)
	}
	if len(s.requests()) != 2 || len(s.payments()) != 1 {
		t.Fatalf("asked %d times, paid %d, want 2, 1", len(s.requests()), len(s.payments()))
	}
	// B101: the paid request is the unpaid one and its payment.
	for i, r := range s.requests() {
		if r.Method != http.MethodPost || r.URL.RawQuery != "q=1" || r.Header.Get("Content-Type") != "application/json" || s.sent[i] != `{"a":1}` {
			t.Errorf("request %d = %s %s %q", i, r.Method, r.URL, s.sent[i])
		}
	}
	if got := s.payments()[0].ValidBefore; got != nowUnix+120 {
		t.Errorf("validBefore = %d, want now and maxTimeoutSeconds, %d", got, nowUnix+120)
	}
}

func TestClient_Do_DrawsAFreshNonceForEachCall(t *testing.T) {
	t.Parallel()
	s := newShop(t, served, offerOf(t, usdc, 2000))
	for range 2 {
		if _, err := client(t).Do(t.Context(), caller.Request{URL: s.URL + "/echo"}); err != nil {
			t.Fatal(err)
		}
	}
	if s.payments()[0].Nonce == s.payments()[1].Nonce {
		t.Error("two calls were paid with one authorization")
	}
}

func TestClient_Do_NamesEachPaymentWhereTheServerTakesNames(t *testing.T) {
	t.Parallel()
	s := newShop(t, served, offerOf(t, usdc, 2000))
	seen := map[string]bool{}
	for range 2 {
		result, err := client(t).Do(t.Context(), caller.Request{URL: s.URL + "/echo"})
		if err != nil {
			t.Fatal(err)
		}
		p, err := payment.Decode(result.PaymentHeader)
		if err != nil {
			t.Fatal(err)
		}
		seen[p.Identifier] = true
	}
	if len(seen) != 2 || seen[""] {
		t.Errorf("identifiers = %v, want one for each payment", seen)
	}
}

func TestClient_Do_ASecondChallengeIsTheResult(t *testing.T) {
	t.Parallel()
	challenge, err := payment.NewChallenge(payment.Resource{URL: "https://shop.test/echo"}, []payment.Offer{offerOf(t, usdc, 2000)})
	if err != nil {
		t.Fatal(err)
	}
	var unpaid, paid atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(payment.HeaderSignature) == "" {
			unpaid.Add(1)
		} else {
			paid.Add(1)
		}
		w.Header().Set(payment.HeaderRequired, challenge.Header(payment.CodeFunds))
		w.WriteHeader(http.StatusPaymentRequired)
	}))
	t.Cleanup(server.Close)
	result, err := client(t).Do(t.Context(), caller.Request{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != http.StatusPaymentRequired || result.Ending() != caller.Refused || result.PaymentHeader == "" {
		t.Errorf("result = %+v", result)
	}
	if unpaid.Load() != 1 || paid.Load() != 1 {
		t.Errorf("%d requests without and %d with a payment, want 1 and 1", unpaid.Load(), paid.Load())
	}
}

func TestClient_Do_WhatIsNoChallengeIsTheResult(t *testing.T) {
	t.Parallel()
	other := newShop(t, served, offerOf(t, usdc, 2000))
	for name, status := range map[string]int{"free": 200, "not found": 404, "closed": 503, "a redirect": 307} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL+"/echo")
			w.WriteHeader(status)
		}))
		t.Cleanup(server.Close)
		result, err := client(t).Do(t.Context(), caller.Request{URL: server.URL})
		if err != nil || result.Status != status || result.PaymentHeader != "" || result.Quote != nil {
			t.Errorf("%s: result = %+v, %v", name, result, err)
		}
	}
	if len(other.requests()) != 0 {
		t.Error("a redirect was followed")
	}
}

func TestClient_Do_NeverCarriesThePaymentToAnotherPlace(t *testing.T) {
	t.Parallel()
	thief := newShop(t, served, offerOf(t, usdc, 2000))
	s := newShop(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+"/echo", http.StatusPermanentRedirect)
	}, offerOf(t, usdc, 2000))
	c := client(t)
	c.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
	result, err := c.Do(t.Context(), caller.Request{URL: s.URL + "/echo"})
	if err != nil || result.Status != http.StatusPermanentRedirect {
		t.Errorf("result = %+v, %v", result, err)
	}
	if len(thief.requests()) != 0 {
		t.Error("the redirect was followed with a payment")
	}
}

func TestClient_Do_KeepsToTheLimit(t *testing.T) {
	t.Parallel()
	yes := func(caller.Quote) (bool, error) { return true, nil }
	no := func(caller.Quote) (bool, error) { return false, nil }
	noTerminal := errors.New("no terminal")
	tests := map[string]struct {
		units   uint64
		maxUSD  string
		confirm func(caller.Quote) (bool, error)
		want    error
	}{
		"below the limit":                     {1_999_999, "2", nil, nil},
		"on the limit":                        {2_000_000, "2", nil, nil},
		"one unit above it":                   {2_000_001, "2", nil, caller.ErrTooExpensive},
		"a dollar without a limit":            {1_000_000, "0", nil, nil},
		"more than a dollar without a limit":  {1_000_001, "0", nil, caller.ErrTooExpensive},
		"a person may pay more than a dollar": {5_000_000, "0", yes, nil},
		"a person says no":                    {1, "0", no, caller.ErrDeclined},
		"a limit holds for a person too":      {2_000_001, "2", yes, caller.ErrTooExpensive},
		"the person can not be asked":         {1, "0", func(caller.Quote) (bool, error) { return true, noTerminal }, noTerminal},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, served, offerOf(t, usdc, test.units))
			c := client(t)
			c.MaxUSD, c.Confirm = decimal.RequireFromString(test.maxUSD), test.confirm
			result, err := c.Do(t.Context(), caller.Request{URL: s.URL + "/echo"})
			if !errors.Is(err, test.want) {
				t.Fatalf("error = %v, want %v", err, test.want)
			}
			if want := map[bool]int{true: 1, false: 0}[test.want == nil]; len(s.payments()) != want || len(s.requests()) != 1+want {
				t.Errorf("asked %d, paid %d, want %d paid", len(s.requests()), len(s.payments()), want)
			}
			if result == nil || result.Quote == nil {
				t.Errorf("result = %+v, want one with the quote", result)
			}
		})
	}
}

func TestClient_Do_PaysInKnownTokensOnly(t *testing.T) {
	t.Parallel()
	s := newShop(t, served, offerOf(t, foreign, 5))
	c := client(t)
	if _, err := c.Do(t.Context(), caller.Request{URL: s.URL + "/echo"}); !errors.Is(err, caller.ErrNoOffer) ||
		!strings.Contains(err.Error(), foreign.Address.Hex()) {
		t.Errorf("error = %v, want ErrNoOffer with the token", err)
	}
	if len(s.payments()) != 0 {
		t.Fatal("an unknown token was paid")
	}
	c.Assets = []caller.Asset{{Network: network.ID, Address: foreign.Address, Symbol: "TEST", Decimals: 2}}
	result, err := c.Do(t.Context(), caller.Request{URL: s.URL + "/echo"})
	if err != nil || result.Quote.USD.String() != "0.05" {
		t.Errorf("result = %+v, %v, want 0.05 USD by the decimals that the client was given", result, err)
	}
}

func TestClient_Do_RefusesARequestWithAPayment(t *testing.T) {
	t.Parallel()
	s := newShop(t, served, offerOf(t, usdc, 1))
	for _, name := range []string{"Payment-Signature", "X-Payment"} {
		if _, err := client(t).Do(t.Context(), caller.Request{URL: s.URL, Header: http.Header{name: {"x"}}}); err == nil || len(s.requests()) != 0 {
			t.Errorf("%s: error = %v after %d requests, want an error before any", name, err, len(s.requests()))
		}
	}
}

func TestClient_Do_ABrokenAnswerKeepsThePayment(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	s := newShop(t, func(w http.ResponseWriter, r *http.Request) {
		if !mended.Load() {
			panic(http.ErrAbortHandler)
		}
		served(w, r)
	}, offerOf(t, usdc, 2000))
	c := client(t)
	_, err := c.Do(t.Context(), caller.Request{Method: http.MethodPost, URL: s.URL + "/echo"})
	unclear, ok := errors.AsType[*caller.UnclearError](err)
	if !ok || unclear.PaymentHeader == "" {
		t.Fatalf("error = %v, want an UnclearError with the payment", err)
	}
	mended.Store(true)
	result, err := c.DoWith(t.Context(), caller.Request{Method: http.MethodPost, URL: s.URL + "/echo"}, unclear.PaymentHeader)
	if err != nil || result.Ending() != caller.Served {
		t.Fatalf("the same payment again = %+v, %v", result, err)
	}
	if paid := s.payments(); len(paid) != 2 || paid[0].Nonce != paid[1].Nonce || paid[0].Signature != paid[1].Signature {
		t.Errorf("payments = %+v, want one authorization twice", paid)
	}
}

func TestClient_Do_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	s := newShop(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}, offerOf(t, usdc, 2000))
	go func() { <-asked; cancel() }()
	_, err := client(t).Do(ctx, caller.Request{URL: s.URL + "/echo"})
	if unclear, ok := errors.AsType[*caller.UnclearError](err); !ok || !errors.Is(unclear, context.Canceled) {
		t.Errorf("error = %v, want an UnclearError for the end of the context", err)
	}
}

func TestClient_Do_CutsAnEndlessBody(t *testing.T) {
	t.Parallel()
	for extra, truncated := range map[int]bool{0: false, 1: true} {
		s := newShop(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(caller.HeaderOutcome, string(call.Served))
			_, _ = io.Copy(w, bytes.NewReader(make([]byte, caller.BodyBytesMax+extra))) //nolint:errcheck // the client may stop
		}, offerOf(t, usdc, 2000))
		result, err := client(t).Do(t.Context(), caller.Request{URL: s.URL + "/echo"})
		if err != nil || len(result.Body) != caller.BodyBytesMax || result.Truncated != truncated {
			t.Errorf("%d bytes too many: %d bytes, truncated %v, %v", extra, len(result.Body), result.Truncated, err)
		}
	}
}

func TestClient_Do_A402ThatIsNoChallengeCostsNothing(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{"none": "", "raw JSON": `{"x402Version":2}`} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(payment.HeaderRequired, header)
			w.WriteHeader(http.StatusPaymentRequired)
		}))
		t.Cleanup(server.Close)
		if result, err := client(t).Do(t.Context(), caller.Request{URL: server.URL}); err == nil || result.Status != 402 {
			t.Errorf("%s: result = %+v, %v, want an error and the answer", name, result, err)
		}
	}
}
