package upstream

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

// What a service sends over HTTP/2 waits in our memory until its caller takes it, and its window says how much that may be.
func TestClient_Stream_OverHTTP2AServiceCanSendLittleAheadOfItsCaller(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	stopped := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(stopped)
		piece := strings.Repeat("a", 4<<10)
		for {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
			n, err := io.WriteString(w, piece)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	}))
	authority := newAuthority(t)
	server.EnableHTTP2, server.TLS = true, &tls.Config{Certificates: []tls.Certificate{authority.issue(t, publicHost, nil)}}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, resolver := startDNS(t, always(0, publicAddress))
	c := redirected(authority.trusting(New(Options{Resolver: resolver})), "http://"+server.Listener.Addr().String())
	t.Cleanup(c.Close)
	to := &taker{took: func(string) error { <-stopped; return nil }} // its caller takes nothing
	got := c.Stream(t.Context(), streamOf(t, publicURL, func(e *catalog.Endpoint) { e.MaxResponseBytes = 64 << 20 }), to)
	if most := int64(streamBytesMax + pieceBytesMax + 16<<10); sent.Load() == 0 || sent.Load() > most || got.Reason == call.OK {
		t.Errorf("%d bytes were sent, want at most %d; it ended %q (%v)", sent.Load(), most, got.Reason, got.Err)
	}
}
