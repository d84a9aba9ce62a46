package apptest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"market/internal/payment"
)

// A Flowing is an answer whose body is still on its way.
type Flowing struct {
	*http.Response
	t testing.TB
}

// Stream sends a request, with a payment where one is given, and returns the answer as soon as its head is there. It has a connection of its own,
// which the test closes.
func (w *World) Stream(t testing.TB, a Asking, paymentHeader string) *Flowing {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), a.Method, a.URL, strings.NewReader(a.Body))
	if err != nil {
		t.Fatal(err)
	}
	if a.Header != nil {
		r.Header = a.Header.Clone()
	}
	r.Header.Set("Content-Type", "application/json")
	if paymentHeader != "" {
		r.Header.Set(payment.HeaderSignature, paymentHeader)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &Flowing{response, t}
}

// Call is the id of the call.
func (f *Flowing) Call() string { return f.Header.Get("Market-Call") }

// Next reads as many bytes as text has and checks that they are it.
func (f *Flowing) Next(text string) {
	f.t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(f.Body, got); err != nil || string(got) != text {
		f.t.Fatalf("the stream went on with %q (%v), want %q", got[:n], err, text)
	}
}

// Rest reads to the end, or to where it breaks.
func (f *Flowing) Rest() (string, error) {
	rest, err := io.ReadAll(f.Body)
	return string(rest), err
}

// Sends is a service that sends each text that comes from the channel as one piece, and ends well when the channel is closed; broken says that it
// breaks then instead. It ends with its request in any case.
func Sends(pieces <-chan string, broken bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case piece, more := <-pieces:
				if !more && broken {
					panic(http.ErrAbortHandler)
				}
				if !more {
					return
				}
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}
