package facilitator

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"market/internal/chain"
)

// Somebody else puts the authorization on the chain first, and so ours is undone. The node that shows that is gone then, and the next one has not come to
// either: there the nonce is unused and the asset would take it. It has paid, so it must not pass for one that failed.
func TestEngine_Settle_ThatATransactionWasUndoneIsConcludedFromOneNode(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.authorize(t, 100, nil)
	u, err := url.Parse(g.URL())
	if err != nil {
		t.Fatal(err)
	}
	var gone atomic.Bool
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		said := httptest.NewRecorder()
		httputil.NewSingleHostReverseProxy(u).ServeHTTP(said, r)
		if strings.Contains(said.Body.String(), `"status":"0x0"`) {
			gone.Store(true)
		}
		_, _ = w.Write(said.Body.Bytes())
	}))
	t.Cleanup(first.Close)
	g.Pause()
	head, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	behind := httptest.NewServer(g.Behind(head.Number))
	t.Cleanup(behind.Close)
	network := g.network
	network.RPC = []string{first.URL, behind.URL}
	node, err := chain.Dial(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	e := g.engine(t, node, nil)
	paid := g.sendAs(t, g.stranger, s, 50)
	g.poolHas(t, g.stranger.Address(), 1)
	done := make(chan chain.Settlement, 1)
	go func() { done <- g.settle(t, e, s) }()
	g.poolHas(t, g.gas.Address(), 1)
	g.Resume()
	got := <-done
	if _, _, found, err := g.node.Locate(t.Context(), s.Expect(), paid); err != nil || !found || !gone.Load() {
		t.Fatalf("the stranger's paid: %v, %v, and ours was shown undone: %v", found, err, gone.Load())
	}
	if got.Status != chain.StatusUnknown || got.Why != whyPending || got.PayerFault {
		t.Errorf("settlement = %+v, want it unknown and pending", got)
	}
}
