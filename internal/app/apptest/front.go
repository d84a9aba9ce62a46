package apptest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"market/internal/devnet"
	"market/internal/source"
)

// A Front stands before a chain as a provider of nodes does, and answers as its test has switched it.
type Front struct {
	*httptest.Server
	instead atomic.Int64 // the status that it answers; 0: it passes on
	hides   atomic.Bool  // it does not tell that the token is paused
}

// HidePause makes the question whether a token is paused one that is answered with no. A network whose token says that it is paused takes no payment at all;
// so a payment gets as far as its settlement only where that is not known yet.
func HidePause(body []byte) []byte {
	const paused, zeroIsBlocked = `"0x5c975abb"`, `"0xfe575a870000000000000000000000000000000000000000000000000000000000000000"`
	return bytes.ReplaceAll(body, []byte(paused), []byte(zeroIsBlocked))
}

// HidePause answers from here on that no token is paused.
func (f *Front) HidePause() { f.hides.Store(true) }

// NewFront starts one that passes on what it is asked.
func NewFront(t testing.TB, chainURL string) *Front {
	t.Helper()
	u, err := url.Parse(chainURL)
	if err != nil {
		t.Fatal(err)
	}
	f, chain := &Front{}, httputil.NewSingleHostReverseProxy(u)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := f.instead.Load(); status != 0 {
			http.Error(w, "not today", int(status))
			return
		}
		if f.hides.Load() {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the caller is gone
			}
			body = HidePause(body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		r.URL.Path = "" // the chain is at no path of its own
		chain.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// Turn switches to a status that it answers; 0 passes on.
func (f *Front) Turn(status int) { f.instead.Store(int64(status)) }

// Prepaid is the node behind a front as the networks file has it.
func (f *Front) Prepaid() map[string]any {
	return map[string]any{"url": f.URL + "/v2/a-key-that-nobody-may-see", "metered": true, "runs_out": "prepaid"}
}

// Source is its name as a source.
func (f *Front) Source(t testing.TB) string {
	t.Helper()
	return source.RPCNames(devnet.NetworkID, []string{f.URL})[0]
}
