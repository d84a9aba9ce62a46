package apptest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/payment"
)

// An Asking is a request to a service.
type Asking struct {
	Method string
	URL    string
	Body   string
	Header http.Header
}

// Ask is a good request to the endpoint of a listed service.
func Ask(url string) Asking { return Asking{Method: http.MethodPost, URL: url, Body: `{"n":1}`} }

// With returns the asking with another body.
func (a Asking) With(body string) Asking { a.Body = body; return a }

// Trial returns the asking as a trial call.
func (a Asking) Trial() Asking { a.URL = strings.Replace(a.URL, "/s/", "/try/", 1); return a }

// An Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	JSON   map[string]any // of a JSON body
}

// Code is the reason in an answer that is none of the service's.
func (a Answer) Code() string { return str(a.JSON["code"]) }

// Call is the id of the call.
func (a Answer) Call() string { return a.Header.Get("Market-Call") }

// Outcome is how the call ended.
func (a Answer) Outcome() string { return a.Header.Get("Market-Outcome") }

// Refund is a member of the answer's refund; empty where there is none.
func (a Answer) Refund(member string) string {
	refund, _ := a.JSON["refund"].(map[string]any)
	return str(refund[member])
}

// Send sends a request, with a payment where one is given.
func (w *World) Send(t testing.TB, a Asking, paymentHeader string) Answer {
	t.Helper()
	return w.SendBy(t, http.DefaultClient, a, paymentHeader)
}

// SendBy is Send by a client of the test's own, which may come from another address.
func (w *World) SendBy(t testing.TB, client *http.Client, a Asking, paymentHeader string) Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), a.Method, a.URL, strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	if a.Header != nil {
		r.Header = a.Header.Clone()
	}
	if a.Body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if paymentHeader != "" {
		r.Header.Set(payment.HeaderSignature, paymentHeader)
	}
	return do(t, client, r)
}

func do(t testing.TB, client *http.Client, r *http.Request) Answer {
	t.Helper()
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answerOf(t, response)
}

func answerOf(t testing.TB, response *http.Response) Answer {
	t.Helper()
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := Answer{Status: response.StatusCode, Header: response.Header, Body: body}
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer.JSON); err != nil && len(body) > 0 && body[0] == '{' {
			t.Fatalf("decode %s: %v", body, err)
		}
	}
	return answer
}

// Challenge gets the terms of a call.
func (w *World) Challenge(t testing.TB, a Asking) payment.Required {
	t.Helper()
	answer := w.Send(t, a, "")
	if answer.Status != http.StatusPaymentRequired {
		t.Fatalf("%s: want a challenge, got %d %s", a.URL, answer.Status, answer.Body)
	}
	required, err := payment.DecodeChallenge(answer.Header.Get(payment.HeaderRequired))
	if err != nil {
		t.Fatal(err)
	}
	return required
}

// Sign pays the first entry of a challenge, against the time of the chain. It returns what goes into PAYMENT-SIGNATURE; each call signs
// another payment.
func (w *World) Sign(t testing.TB, payer chain.Key, required payment.Required) string {
	t.Helper()
	return w.SignFor(t, payer, required, required.Accepts[0].MaxTimeoutSeconds)
}

// SignFor is Sign for an authorization that lives so many seconds of the chain's time.
func (w *World) SignFor(t testing.TB, payer chain.Key, required payment.Required, seconds int64) string {
	t.Helper()
	accepted := required.Accepts[0]
	header, err := payment.EncodePayload(accepted, required.Resource, w.authorize(t, payer, accepted, seconds))
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// SignNamed is Sign with a payment-identifier.
func (w *World) SignNamed(t testing.TB, payer chain.Key, required payment.Required, identifier string) string {
	t.Helper()
	accepted := required.Accepts[0]
	header, err := payment.EncodeIdentified(required, accepted, w.authorize(t, payer, accepted, accepted.MaxTimeoutSeconds), identifier)
	if err != nil {
		t.Fatal(err)
	}
	return header
}

// authorize signs an authorization of its own that pays an entry of a challenge and lives so long from the head on.
func (w *World) authorize(t testing.TB, payer chain.Key, accepted payment.Accepted, seconds int64) chain.Signed {
	t.Helper()
	a, domain := w.unsigned(t, payer.Address(), accepted, seconds)
	signature, err := payer.SignAuthorization(domain, a)
	if err != nil {
		t.Fatal(err)
	}
	return chain.Signed{Asset: accepted.Asset, Authorization: a, Signature: signature}
}

// unsigned makes an authorization with a nonce of its own, and the domain that it is signed in.
func (w *World) unsigned(t testing.TB, payer common.Address, accepted payment.Accepted, seconds int64) (chain.Authorization, chain.Domain) {
	t.Helper()
	head, err := w.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var nonce common.Hash
	if _, err := rand.Read(nonce[:]); err != nil {
		t.Fatal(err)
	}
	a := chain.Authorization{From: payer, To: accepted.PayTo, Value: accepted.Amount,
		ValidBefore: head.Time + uint64(seconds), Nonce: nonce} //nolint:gosec // a test's own terms
	return a, chain.NewDomain(chain.Asset{Address: accepted.Asset, EIP712Name: devnet.TokenName, EIP712Version: devnet.TokenVersion}, devnet.ChainID)
}

// Pay sends a request with a payment for terms that were got before: also where the gate would name none now.
func (w *World) Pay(t testing.TB, payer chain.Key, required payment.Required, a Asking) Answer {
	t.Helper()
	return w.Send(t, a, w.Sign(t, payer, required))
}

// Record reads a call's record.
func (w *World) Record(t testing.TB, id string) Answer {
	t.Helper()
	return w.Send(t, Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/calls/" + id}, "")
}

// AwaitRefund waits until the refund of a call is confirmed, and returns its transaction.
func (w *World) AwaitRefund(t testing.TB, id string) string {
	t.Helper()
	var record Answer
	Eventually(t, "the refund of call "+id+" is confirmed", func() bool {
		record = w.Record(t, id)
		return record.Refund("state") == "confirmed"
	})
	return record.Refund("transaction")
}

// SendAndLeave sends a request, hangs up once asked is closed, and returns a function that tells the id of the newest call.
func (w *World) SendAndLeave(t testing.TB, a Asking, paymentHeader string, asked <-chan struct{}) func() string {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, a.Method, a.URL, strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	if a.Header != nil {
		r.Header = a.Header.Clone()
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(payment.HeaderSignature, paymentHeader)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(r); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-asked
	leave()
	<-gone
	return func() string {
		var id string
		if err := w.DB.QueryRow(t.Context(), `SELECT id::text FROM calls ORDER BY created_at DESC LIMIT 1`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
}
