package conformance

import (
	"net/http"
	"testing"

	"market/internal/app/apptest"
)

// flow is a channel with two pieces of a stream in it, and its end.
func flow() <-chan string {
	pieces := make(chan string, 2)
	pieces <- "one"
	pieces <- "two"
	close(pieces)
	return pieces
}

// The outcome is a trailer, which none of the clients shows; the record has it.
func (c client) getsAStream(t *testing.T, w *apptest.World) {
	s, p := w.List(t, "streams", apptest.Sends(flow(), false), map[string]any{"stream": true}), fund(t, w, funds)
	got := c.call(t, p, s.URL)
	if got.Status != http.StatusOK || got.Body != "onetwo" || got.Call == "" || s.Asked() != 1 {
		t.Fatalf("got %s, and the service was asked %d times", got, s.Asked())
	}
	c.paidOnce(t, got)
	c.settled(t, w, got, p, w.Treasury, apptest.PriceUnits)
	w.AwaitBooks(t, got.Call, apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
}

func (c client) seesAStreamBreak(t *testing.T, w *apptest.World) {
	s, p := w.List(t, "breaks", apptest.Sends(flow(), true), map[string]any{"stream": true}), fund(t, w, funds)
	got := c.call(t, p, s.URL)
	if got.Error == "" || s.Asked() != 1 {
		t.Errorf("got %s, and the service was asked %d times; want the client to throw", got, s.Asked())
	}
	c.paidOnce(t, got)
	apptest.Eventually(t, "the price is back", func() bool {
		_, paid := w.Transfers(t, p.address)
		return len(paid) == 1 && w.Balance(t, p.address) == funds
	})
}
