package upstream

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// outwardTo posts to an address by the way to messages, and returns the status or what went wrong.
func outwardTo(ctx context.Context, t *testing.T, o Options, address string) (int, string) {
	t.Helper()
	c := New(o)
	defer c.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.Outward().RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	_ = response.Body.Close()
	return response.StatusCode, ""
}

// B110, B111: a message to a stranger's address is held to the same rules as a call.
func TestOutward_APrivateAddressIsNotAskedAndNotNamed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inner.Close()
	for _, address := range []string{inner.URL, "https://127.0.0.1/hook", "https://169.254.169.254/latest", "https://[::ffff:10.0.0.1]/", "https://[fd00:ec2::254]/"} {
		status, why := outwardTo(t.Context(), t, Options{}, address)
		if status != 0 || why != "the receiver's name leads to an address that is not public" {
			t.Errorf("%s: %d, %q", address, status, why)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the inner server was asked %d times", n)
	}
}

func TestOutward_SaysInPlainWordsWhatWentWrong(t *testing.T) {
	t.Parallel()
	silent := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-silent:
		case <-r.Context().Done():
		}
	}))
	defer receiver.Close()
	defer close(silent)
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, why := outwardTo(short, t, Options{AllowPrivate: true}, receiver.URL); why != "the receiver did not answer in time" {
		t.Errorf("a receiver that says nothing: %q", why)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, why := outwardTo(t.Context(), t, Options{AllowPrivate: true}, gone.URL); why != "the receiver refused the connection" {
		t.Errorf("a receiver that is gone: %q", why)
	}
	moved := httptest.NewServer(http.RedirectHandler(receiver.URL, http.StatusFound))
	defer moved.Close()
	if status, why := outwardTo(t.Context(), t, Options{AllowPrivate: true}, moved.URL); status != http.StatusFound {
		t.Errorf("a receiver that sends us on: %d, %q; want its own answer", status, why)
	}
}
