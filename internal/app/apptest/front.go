package apptest

import (
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
}

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
