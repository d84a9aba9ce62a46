package notifytest

import (
	"encoding/json"
	"io"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Secret is what a Receiver verifies by.
const Secret = "whsec_dGhpcy1pcy10aGUtc2VjcmV0LW9mLWEtdGVzdA==" //nolint:gosec // of tests alone

// decoded is the text of a quoted-printable body.
func decoded(body string) string {
	text, err := io.ReadAll(quotedprintable.NewReader(strings.NewReader(body)))
	if err != nil {
		return body
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// A Delivery is a webhook that was received and is signed.
type Delivery struct {
	ID        string
	Type      string
	Timestamp string
	Data      json.RawMessage
}

// A Receiver takes webhooks.
type Receiver struct {
	server *httptest.Server

	mu         sync.Mutex
	deliveries []Delivery
	asked      int
	status     int
	header     http.Header
}

// NewReceiver starts one on this machine until the test ends, which verifies by a secret.
func NewReceiver(t testing.TB, secret string) *Receiver {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	r := &Receiver{status: http.StatusOK}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked++
		if err != nil || request.Method != http.MethodPost || request.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s of %q: %v", request.Method, request.Header.Get("Content-Type"), err)
		}
		if err := verifier.Verify(body, request.Header); err != nil {
			t.Errorf("the signature of %s: %v", body, err)
		}
		d := Delivery{ID: request.Header.Get(standardwebhooks.HeaderWebhookID)}
		if err := json.Unmarshal(body, &d); err != nil {
			t.Errorf("the body %s: %v", body, err)
		}
		for name, values := range r.header {
			w.Header()[name] = values
		}
		w.WriteHeader(r.status)
		if r.status >= 200 && r.status < 300 {
			r.deliveries = append(r.deliveries, d)
		}
	}))
	t.Cleanup(r.server.Close)
	return r
}

// URL is its address, with a path that nobody is to see.
func (r *Receiver) URL() string { return r.server.URL + "/hidden-path" }

// Client reaches it.
func (r *Receiver) Client() *http.Client { return r.server.Client() }

// Answer is what it says from now on.
func (r *Receiver) Answer(status int, header http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.header = status, header
}

// Deliveries are what it took, in their order.
func (r *Receiver) Deliveries() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.deliveries)
}

// Asked counts the requests.
func (r *Receiver) Asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}
