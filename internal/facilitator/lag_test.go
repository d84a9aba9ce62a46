package facilitator

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"market/internal/chain"
)

// B79: of two nodes the one that is ahead says that the time of a payment is over, and the one that is asked next has not come to its transfer yet. The
// payer would be asked for another payment if that passed for a no.
func TestEngine_Settle_ANodeThatIsBehindMakesNoPaidAuthorizationExpire(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.authorize(t, 10, func(a *chain.Authorization) { a.ValidBefore -= 590 })
	paid := g.sendAs(t, g.stranger, s, 1)
	eventually(t, "it is paid", func() bool {
		_, _, found, err := g.node.Locate(t.Context(), s.Expect(), paid)
		return err == nil && found
	})
	proof, _, _, err := g.node.Locate(t.Context(), s.Expect(), paid)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Elapse(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(g.URL())
	if err != nil {
		t.Fatal(err)
	}
	ahead, behind := httputil.NewSingleHostReverseProxy(u), g.Behind(proof.BlockNumber-1)
	transfer := []byte(hex.EncodeToString(chain.Calldata(s)[:4]))
	two := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, transfer) {
			ahead.ServeHTTP(w, r)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(two.Close)
	if got := g.settle(t, g.engine(t, g.dial(t, two.URL), nil), s); got.Status != chain.StatusUnknown || got.PayerFault {
		t.Errorf("settlement = %+v, want it unknown and nobody to blame", got)
	}
}
