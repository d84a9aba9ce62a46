package chain

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

const (
	yesWord = `"0x0000000000000000000000000000000000000000000000000000000000000001"`
	noWord  = `"0x0000000000000000000000000000000000000000000000000000000000000000"`
)

var ourTreasury = common.Address{0xaa}

// standingNode answers a question for the standing: the asset is not paused, the account not blocked, and it holds one unit.
func standingNode(change fakeNode) fakeNode {
	all := fakeNode{"eth_chainId": `"0x14a34"`, "eth_blockNumber": `"0x100"`, "eth_getBlockByNumber": headJSON(0x100), "eth_call paused": noWord,
		"eth_call isBlacklisted": noWord, "eth_call balanceOf": yesWord}
	for method, result := range change {
		all[method] = result
	}
	return all
}

// What an asset lacks is no obstacle, and what a node does not say is no yes and no no.
func TestNode_Standing_TellsANoFromNoAnswer(t *testing.T) {
	t.Parallel()
	const reverts, limit = `error:{"code":3,"message":"execution reverted","data":"0x"}`, `error:{"code":-32005,"message":"limit exceeded"}`
	for name, tt := range map[string]struct {
		says            fakeNode
		paused, blocked bool
		definite, fails bool
	}{
		"all is well":                         {fakeNode{}, false, false, false, false},
		"it is paused":                        {fakeNode{"eth_call paused": yesWord}, true, false, false, false},
		"we are on its blocklist":             {fakeNode{"eth_call isBlacklisted": yesWord}, false, true, false, false},
		"it knows no pause and no blocklist":  {fakeNode{"eth_call paused": reverts, "eth_call isBlacklisted": reverts}, false, false, false, false},
		"it has a function that says nothing": {fakeNode{"eth_call paused": `"0x"`, "eth_call isBlacklisted": `"0x"`}, false, false, false, false},
		"it answers a question with a number": {fakeNode{"eth_call paused": strings.Replace(yesWord, "01", "02", 1)}, false, false, false, false},
		"an old contract, that ends without a word": {fakeNode{"eth_call paused": `error:{"code":-32000,"message":"invalid opcode: INVALID"}`}, false, false,
			false, false},
		"the node would say it another time": {fakeNode{"eth_call paused": limit}, false, false, false, true},
		"it has no balance":                  {fakeNode{"eth_call balanceOf": reverts}, false, false, false, true},
		"a balance of another form":          {fakeNode{"eth_call balanceOf": `"0x01"`}, false, false, false, true},
		"another chain":                      {fakeNode{"eth_chainId": `"0x1"`}, false, false, true, true},
		"no chain id":                        {fakeNode{"eth_chainId": limit}, false, false, false, true},
		"no head":                            {fakeNode{"eth_getBlockByNumber": `null`}, false, false, false, true},
		"a head that is too old":             {fakeNode{"eth_getBlockByNumber": headAt(0x100, startOfTest.Add(-time.Hour))}, false, false, true, true},
		"an old contract and another chain":  {fakeNode{"eth_chainId": `"0x1"`, "eth_call paused": `error:{"code":-32000,"message":"out of gas"}`}, false, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSwitched(t, standingNode(nil))
			n, err := Dial(t.Context(), networkAt(s.URL))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(n.Close)
			s.turn(func(w http.ResponseWriter, r *http.Request) { standingNode(tt.says).ServeHTTP(w, r) })
			got, err := n.Standing(t.Context(), ourTreasury)
			if (err != nil) != tt.fails || Denies(err) != tt.definite {
				t.Fatalf("%v, definite %v; want an error %v, definite %v", err, Denies(err), tt.fails, tt.definite)
			}
			if _, trouble := errors.AsType[*Trouble](err); err != nil && !tt.definite && !trouble {
				t.Errorf("error = %v, want a Trouble", err)
			}
			if err != nil {
				return
			}
			if a := got.Assets[0]; a.Paused != tt.paused || a.Blocked != tt.blocked || a.Holds.String() != "1" || got.Head.Number != 0x100 || got.Sure != 0x100-lagMax {
				t.Errorf("%+v, want paused %v, blocked %v, and one unit", got, tt.paused, tt.blocked)
			}
		})
	}
}

// Of several nodes one is enough, and a no is definite only where each that was asked says the same.
func TestNode_Standing_ANoIsDefiniteWhereNoNodeSaysNothing(t *testing.T) {
	t.Parallel()
	fails := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not today", http.StatusBadGateway) })
	old, other := fakeNode{"eth_getBlockByNumber": headAt(0x100, startOfTest.Add(-time.Hour))}, fakeNode{"eth_chainId": `"0x1"`}
	for name, tt := range map[string]struct {
		first, second   http.Handler
		definite, fails bool
	}{
		"the second one works":          {standingNode(old), standingNode(nil), false, false},
		"both stand still":              {standingNode(old), standingNode(old), true, true},
		"one stands still, one is gone": {standingNode(old), fails, false, true},
		"both are of another chain":     {standingNode(other), standingNode(other), true, true},
		"one is, and one is gone":       {standingNode(other), fails, false, true},
		"both are gone":                 {fails, fails, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := newSwitched(t, standingNode(nil)), newSwitched(t, standingNode(nil))
			network := networkAt(first.URL)
			network.RPC = append(network.RPC, second.URL)
			n, err := Dial(t.Context(), network)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(n.Close)
			first.turn(tt.first.ServeHTTP)
			second.turn(tt.second.ServeHTTP)
			_, err = n.Standing(t.Context(), ourTreasury)
			if (err != nil) != tt.fails || Denies(err) != tt.definite {
				t.Errorf("%v, definite %v; want an error %v, definite %v", err, Denies(err), tt.fails, tt.definite)
			}
		})
	}
}

// The chain, its head and what every asset says take one round trip, however many assets a network usually has.
func TestNode_Standing_IsOneRoundTrip(t *testing.T) {
	t.Parallel()
	for assets, trips := range map[int]int{0: 1, 1: 1, 16: 1, 17: 2, 32: 2, 33: 3} {
		s := newSwitched(t, standingNode(nil))
		network := networkAt(s.URL)
		network.Assets = nil
		for i := range assets {
			a := usdc()
			a.Address[0] = byte(i)
			network.Assets = append(network.Assets, a)
		}
		n, err := Dial(t.Context(), network)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		if _, err := n.Balance(t.Context(), ourTreasury); err != nil { // it is in use from here on
			t.Fatal(err)
		}
		s.drain()
		got, err := n.Standing(t.Context(), ourTreasury)
		if asked := s.drain(); err != nil || len(got.Assets) != assets || len(asked) != trips {
			t.Errorf("%d assets: %d of them in %d round trips, %v; want %d", assets, len(got.Assets), len(asked), err, trips)
		}
	}
}
