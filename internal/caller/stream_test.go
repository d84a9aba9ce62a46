package caller_test

import (
	"io"
	"net/http"
	"testing"

	"market/internal/call"
	"market/internal/caller"
)

// takes is a writer that hands each piece over before it takes the next.
type takes chan string

func (w takes) Write(piece []byte) (int, error) {
	if len(piece) > 0 {
		w <- string(piece)
	}
	return len(piece), nil
}

// flowing answers with what comes from pieces, each at once, and says at the end how the call ended.
func flowing(pieces <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(caller.HeaderCall, "call-1")
		w.Header().Set("Trailer", caller.HeaderOutcome)
		for piece := range pieces {
			if piece == "" {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, piece)           //nolint:errcheck // the test waits for it
			_ = http.NewResponseController(w).Flush() //nolint:errcheck // as above
		}
		w.Header().Set(caller.HeaderOutcome, string(call.Served))
	}
}

func TestClient_Do_PassesAStreamOnAsItComesAndReadsItsTrailer(t *testing.T) {
	t.Parallel()
	pieces, taken := make(chan string), make(takes)
	s := newShop(t, flowing(pieces), offerOf(t, usdc, 2000))
	c := client(t)
	c.Stream = taken
	go func() {
		defer close(pieces)
		for _, piece := range []string{"one", "two"} {
			pieces <- piece
			if got := <-taken; got != piece {
				t.Errorf("%q was passed on, want %q", got, piece)
			}
		}
	}()
	result, err := c.Do(t.Context(), caller.Request{URL: s.URL + "/echo"})
	if err != nil {
		t.Fatal(err)
	}
	if result.Outcome != call.Served || result.Ending() != caller.Served || result.Broken != nil || len(result.Body) != 0 || result.CallID != "call-1" {
		t.Errorf("result = %+v", result)
	}
}

// What became of it is in its record: the connection may have broken on our side of the market, too.
func TestClient_Do_AStreamThatBreaksOffIsNotTakenForServed(t *testing.T) {
	t.Parallel()
	pieces := make(chan string, 2)
	pieces <- "one"
	pieces <- ""
	s := newShop(t, flowing(pieces), offerOf(t, usdc, 2000))
	c := client(t)
	c.Stream = io.Discard
	result, err := c.Do(t.Context(), caller.Request{URL: s.URL + "/echo"})
	if err != nil {
		t.Fatal(err)
	}
	if result.Broken == nil || result.Ending() != caller.Pending || result.PaymentHeader == "" {
		t.Errorf("result = %+v", result)
	}
}
