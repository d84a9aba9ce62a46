package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// newBacked answers from a real chain.
func newBacked(t *testing.T, g *ground) *switched {
	t.Helper()
	chain, err := url.Parse(g.URL())
	if err != nil {
		t.Fatal(err)
	}
	return switchedTo(t, httputil.NewSingleHostReverseProxy(chain))
}

// lapsing is an authorization that was paid in a block, and whose time is over since then.
type lapsing struct {
	*ground
	signed Signed
	by     Proof
	head   uint64 // few enough blocks after it that an endpoint which has not seen it may take over
}

func newLapsing(t *testing.T) lapsing {
	t.Helper()
	g := newGround(t)
	s := g.authorize(t, 100, func(a *Authorization) { a.ValidBefore -= 590 })
	proof, _ := ProofIn(g.pay(t, s).Logs, s.Expect())
	if err := g.Elapse(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	head, err := g.node.FreshHead(t.Context())
	if err != nil || head.Time < s.ValidBefore || lags(proof.BlockNumber-1, head.Number) {
		t.Fatalf("the head is %+v, %v: want it past %d, and little past block %d", head, err, s.ValidBefore, proof.BlockNumber)
	}
	return lapsing{g, s, proof, head.Number}
}

func (l lapsing) over(t *testing.T, endpoints ...string) *Node {
	t.Helper()
	network := l.node.Network()
	network.RPC = endpoints
	n, err := Open(network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// behind serves the chain without its last blocks from one on.
func (l lapsing) behind(t *testing.T, from uint64) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(l.Behind(from - 1))
	t.Cleanup(server.Close)
	return server
}

// B79: an endpoint that has not seen a payment proves nothing about it, whether it is the only one or takes over between two calls that belong together.
// This one is the worst of its kind: asked for a block that it does not have, it answers for its newest.
func TestNode_ALaggingEndpointProvesNoPaymentGone(t *testing.T) {
	t.Parallel()
	l := newLapsing(t)
	s, in := l.signed, l.by.BlockNumber
	first, behind := newBacked(t, l.ground), l.behind(t, in)
	for name, concludes := range map[string]func(*Node) error{
		"that it has lapsed": func(n *Node) error {
			lapsed, err := n.LapsedAt(t.Context(), s.Asset, s.From, s.Nonce, s.ValidBefore, 1)
			if lapsed {
				return fmt.Errorf("it counts as lapsed (%v)", err)
			}
			return nil
		},
		"that its nonce is unused": func(n *Node) error {
			used, block, err := n.UsedAt(t.Context(), s.Asset, s.From, s.Nonce, 1)
			if err == nil && !used && block >= in {
				return fmt.Errorf("its nonce counts as unused at block %d", block)
			}
			return nil
		},
		"that its transfer is not there": func(n *Node) error {
			_, found, err := n.FindSettlementTo(t.Context(), s.Expect(), 0, in)
			if err == nil && !found {
				return fmt.Errorf("its transfer is nowhere up to block %d", in)
			}
			return nil
		},
	} {
		if err := concludes(l.over(t, behind.URL)); err != nil {
			t.Errorf("%s, by the one that is behind: %v", name, err)
		}
		for answers := 1; answers <= 6; answers++ { // the first says which chain it serves
			first.turnAfter(answers, status(http.StatusServiceUnavailable))
			if err := concludes(l.over(t, first.URL, behind.URL)); err != nil {
				t.Errorf("%s, with the first gone after %d answers: %v", name, answers, err)
			}
		}
	}
}

func TestNode_ALaggingEndpointTakesOverWhatItKnows(t *testing.T) {
	t.Parallel()
	l := newLapsing(t)
	first, behind := newBacked(t, l.ground), l.behind(t, l.by.BlockNumber+1)
	n := l.over(t, first.URL, behind.URL)
	if _, err := n.FreshHead(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.turn(status(http.StatusPaymentRequired))
	proof, depth, found, err := n.Locate(t.Context(), l.signed.Expect(), l.by.Transaction)
	if err != nil || !found || proof != l.by || depth != 1 {
		t.Errorf("%+v at depth %d, %v, %v, want %+v at depth 1", proof, depth, found, err, l.by)
	}
}

func TestOneView_IsOneEndpointFromItsBeginning(t *testing.T) {
	t.Parallel()
	first, second := newSwitched(t, nil), newSwitched(t, nil)
	n, _ := over(t, nil, first, second)
	rounds := 0
	err := OneView(t.Context(), func(ctx context.Context) error {
		rounds++
		if _, err := n.FreshHead(ctx); err != nil {
			return err
		}
		first.turn(status(http.StatusBadGateway))
		return OneView(ctx, func(ctx context.Context) error { // shares the view
			_, err := n.Balance(ctx, common.Address{1})
			return err
		})
	})
	if err != nil || rounds != 2 {
		t.Errorf("%v after %d rounds, want the work done again by the second", err, rounds)
	}
	asked := second.drain()
	if want := []string{"eth_chainId+eth_blockNumber", "eth_getBlockByNumber", "eth_getBalance"}; !slices.Equal(asked, want) {
		t.Errorf("the second was asked %v, want %v", asked, want)
	}
}

func TestOneView_EndsWhereNoEndpointCanGoOn(t *testing.T) {
	t.Parallel()
	first, second := newSwitched(t, nil), newSwitched(t, nil)
	n, _ := over(t, nil, first, second)
	rounds := 0
	err := OneView(t.Context(), func(ctx context.Context) error {
		rounds++
		first.turn(nil)
		second.turn(nil)
		if _, err := n.FreshHead(ctx); err != nil {
			return err
		}
		first.turn(status(http.StatusBadGateway))
		second.turn(status(http.StatusBadGateway))
		_, err := n.Balance(ctx, common.Address{1})
		return err
	})
	if _, ok := errors.AsType[*Trouble](err); !ok || rounds != viewsMax {
		t.Errorf("%v after %d rounds, want trouble after %d", err, rounds, viewsMax)
	}
}

func TestNode_Check_TellsLiesFromTrouble(t *testing.T) {
	t.Parallel()
	good, other := newSwitched(t, nil), newSwitched(t, fakeNode{"eth_chainId": `"0x1"`})
	dead := newSwitched(t, nil)
	dead.Close()
	for name, tt := range map[string]struct {
		endpoints []*switched
		ok, lies  bool
	}{
		"one that answers":                   {[]*switched{good}, true, false},
		"one of two answers":                 {[]*switched{dead, good}, true, false},
		"none is reached":                    {[]*switched{dead}, false, false},
		"none of two is reached":             {[]*switched{dead, dead}, false, false},
		"another chain":                      {[]*switched{other}, false, true},
		"another chain behind one that fits": {[]*switched{good, other}, false, true},
		"another chain beside a dead one":    {[]*switched{dead, other}, false, true},
	} {
		n, _ := over(t, nil, tt.endpoints...)
		if err := n.Check(t.Context()); tt.ok != (err == nil) || tt.lies != Lies(err) {
			t.Errorf("%s: %v, want a lie: %v", name, err, tt.lies)
		}
	}
}

func TestNode_Check_PassesByOneWhileAnotherHangs(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	hangs, works := newSwitched(t, nil), newBacked(t, g)
	hangs.turn(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	network := g.node.Network()
	network.RPC, network.Assets = []string{hangs.URL, works.URL}, []Asset{g.asset}
	n, err := Open(network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience+time.Second)
	defer cancel()
	if err := n.Check(ctx); err != nil {
		t.Fatalf("%v, want the second endpoint's word within the caller's time", err)
	}
	if n.endpoints[0].failures == 0 {
		t.Error("the one that hangs is not put to rest")
	}
}

// A node that still syncs has no contract where the network has one.
func TestNode_Check_ANodeThatSyncsTellsNoLie(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	syncs := func(since time.Duration) *switched {
		return newSwitched(t, fakeNode{
			"eth_chainId": fmt.Sprintf(`"%#x"`, g.node.Network().ChainID), "eth_getCode": `"0x"`, "eth_call": `"0x"`,
			"eth_getBlockByNumber": headAt(0x10, startOfTest.Add(-since)),
		})
	}
	stale, fresh, works := syncs(time.Hour), syncs(0), newBacked(t, g)
	for name, tt := range map[string]struct {
		endpoints []*switched
		ok, lies  bool
	}{
		"beside one that is where the chain is": {[]*switched{stale, works}, true, false},
		"alone":                                 {[]*switched{stale}, false, false},
		"all of them":                           {[]*switched{stale, syncs(time.Hour)}, false, false},
		"it is where the chain is":              {[]*switched{fresh}, false, true},
	} {
		network := g.node.Network()
		network.RPC = nil
		for _, e := range tt.endpoints {
			network.RPC = append(network.RPC, e.URL)
		}
		n, err := Open(network)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		if err := n.Check(t.Context()); tt.ok != (err == nil) || tt.lies != Lies(err) {
			t.Errorf("%s: %v, want a lie: %v", name, err, tt.lies)
		}
	}
}

func TestNode_Check_PassesOnce(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	first := newBacked(t, g)
	first.turn(status(http.StatusBadGateway))
	network := g.node.Network()
	network.RPC = []string{first.URL}
	n, err := Open(network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	if err := n.Check(t.Context()); err == nil || Lies(err) {
		t.Errorf("out: %v", err)
	}
	first.turn(nil)
	if err := n.Check(t.Context()); err != nil {
		t.Errorf("back: %v", err)
	}
	first.drain()
	if err := n.Check(t.Context()); err != nil || len(first.drain()) > 0 {
		t.Errorf("again: %v, and it was asked again", err)
	}
	network.Assets = []Asset{g.asset}
	network.Assets[0].EIP712Name = "USD Coin"
	if n, err = Open(network); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	if err := n.Check(t.Context()); !Lies(err) {
		t.Errorf("a token of another name: %v, want a lie", err)
	}
}

func TestNode_AnEndpointOfAnotherChainIsNeverUsed(t *testing.T) {
	t.Parallel()
	first, other := newSwitched(t, nil), newSwitched(t, fakeNode{"eth_chainId": `"0x1"`})
	n, clock := over(t, nil, first, other)
	if _, err := n.Balance(t.Context(), common.Address{1}); err != nil {
		t.Fatal(err)
	}
	first.turn(status(http.StatusBadGateway))
	for range 3 {
		_, err := n.Balance(t.Context(), common.Address{1})
		if err == nil || !Lies(err) {
			t.Errorf("%v, want that it serves another chain", err)
		}
		clock.pass(time.Hour)
	}
	for _, asked := range other.drain() {
		if !strings.HasPrefix(asked, "eth_chainId") {
			t.Errorf("it was asked for %s", asked)
		}
	}
}
