package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A way is a network of which every request goes through, or none.
type way struct {
	closed atomic.Bool
	asked  atomic.Int32 // what is supported
}

func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/supported") {
		w.asked.Add(1)
	}
	if w.closed.Load() {
		return nil, errors.New("nobody is there")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(supportsBoth)), Request: r}, nil
}

// A connection that could not be made once closes a network that has no other facilitator, so it must not last until the next regular question.
func TestClient_Watch_AsksSoonAfterAPaymentCouldNotBeShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{Name: "hosted", URL: "http://facilitator.example", Resource: "https://market.example"})
		if err != nil {
			t.Fatal(err)
		}
		w := &way{}
		c.http.Transport = w
		if err := c.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.Watch(ctx)
		synctest.Wait()
		w.closed.Store(true)
		if got := settle(ctx, c); got.Kind != Unsent || c.Ready(network) == nil {
			t.Errorf("answer %+v, ready says %v, want that nothing was sent and nobody is asked to pay", got, c.Ready(network))
		}
		w.closed.Store(false)
		<-time.After(askAgain)
		synctest.Wait()
		if err := c.Ready(network); err != nil || w.asked.Load() != 2 {
			t.Errorf("%s later: %v, asked %d times, want it ready and asked twice", askAgain, err, w.asked.Load())
		}
		<-time.After(askEvery - time.Nanosecond)
		synctest.Wait()
		if n := w.asked.Load(); n != 2 {
			t.Errorf("once it answers again it is asked after less than %s", askEvery)
		}
	})
}
