package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

func hexOf(n uint64) string { return fmt.Sprintf("%#x", n) }

func TestRestAfter_DoublesToAMinute(t *testing.T) {
	t.Parallel()
	for failures, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: 5 * time.Second, 2: 10 * time.Second, 3: 20 * time.Second, 4: 40 * time.Second, 5: time.Minute, 6: time.Minute, 1_000_000: time.Minute,
	} {
		if got := restAfter(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}

func TestLags_BeginsPastTheAllowedBlocks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		head, newest uint64
		want         bool
	}{
		"nothing is known":         {0, 0, false},
		"a chain that just began":  {0, lagMax, false},
		"ahead":                    {101, 100, false},
		"as far":                   {100, 100, false},
		"just allowed":             {100 - lagMax, 100, false},
		"one block past it":        {100 - lagMax - 1, 100, true},
		"a node that begins anew":  {0, 100, true},
		"the highest there can be": {1 << 62, 1 << 63, true},
	} {
		if got := lags(tt.head, tt.newest); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// B85: one dead or exhausted RPC URL must not stop what another can do.
func TestNode_TheNextEndpointAnswersThisVeryCall(t *testing.T) {
	t.Parallel()
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	for name, instead := range map[string]http.HandlerFunc{
		"no credit":                      status(http.StatusPaymentRequired),
		"too many requests":              status(http.StatusTooManyRequests),
		"a key that is not taken":        status(http.StatusForbidden),
		"no key":                         status(http.StatusUnauthorized),
		"a broken gateway":               status(http.StatusBadGateway),
		"an address that is gone":        status(http.StatusNotFound),
		"a page":                         body("<html>We will be back soon</html>"),
		"an empty answer":                body(""),
		"half an answer":                 body(`{"jsonrpc":"2.0","id":1,"resu`),
		"an answer without a result":     body(`{"jsonrpc":"2.0","id":1}`),
		"a result of another form":       fakeNode{"eth_chainId": `"0x14a34"`, "eth_getBalance": `{"wei":7}`, "eth_call": `7`, "eth_getCode": `7`}.ServeHTTP,
		"a quota of JSON-RPC":            errorObject(`{"code":-32005,"message":"daily request count exceeded"}`),
		"a rate of JSON-RPC":             errorObject(`{"code":429,"message":"compute units exceeded"}`),
		"an error of the node itself":    errorObject(`{"code":-32603,"message":"Internal error"}`),
		"one error object for all calls": body(`{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"batch limit"}}`),
		"a connection that is cut":       cut,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			word := `"0x` + strings.Repeat("0", 63) + `1"`
			first, second := newSwitched(t, nil), newSwitched(t, fakeNode{"eth_getBalance": `"0x9"`, "eth_call": word, "eth_getCode": `"0x"`})
			n, _ := over(t, []Gate{&testGate{refused: limits}, &testGate{refused: limits}}, first, second)
			if got, err := n.Balance(t.Context(), common.Address{1}); err != nil || got.Int64() != 7 {
				t.Fatalf("while the first works: %v, %v", got, err)
			}
			first.turn(instead)
			second.drain()
			if got, err := n.Balance(t.Context(), common.Address{1}); err != nil || got.Int64() != 9 {
				t.Errorf("one call: %v, %v, want the second endpoint's answer", got, err)
			}
			// A batch, whose elements hold nothing that the first left.
			n.endpoints[0].failures, n.endpoints[0].restsUntil, n.current = 0, time.Time{}, n.endpoints[0]
			if got, err := n.Account(t.Context(), usdc().Address, common.Address{1}, common.Hash{1}); err != nil || got.Balance.String() != "1" || !got.NonceUsed {
				t.Errorf("a batch: %+v, %v, want the second endpoint's answer", got, err)
			}
			if asked := second.drain(); !slices.Contains(asked, "eth_getBalance") || !strings.HasPrefix(asked[0], "eth_chainId") {
				t.Errorf("the second was asked %v, want which chain it serves before anything else", asked)
			}
		})
	}
}

func TestNode_AnAnswerThatIsANoIsAskedOfNobodyElse(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"a revert":                   `{"code":3,"message":"execution reverted: quota exceeded","data":"0x08c379a0"}`,
		"a revert without evidence":  `{"code":-32000,"message":"execution reverted: daily limit exceeded"}`,
		"a nonce that is used":       `{"code":-32000,"message":"nonce too low"}`,
		"a method that it has not":   `{"code":-32601,"message":"the method does not exist"}`,
		"a revert by another's code": `{"code":-32603,"message":"VM exception","data":"0x08c379a0"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := newSwitched(t, fakeNode{"eth_call": "error:" + object}), newSwitched(t, nil)
			gate := &testGate{}
			n, _ := over(t, []Gate{gate, &testGate{}}, first, second)
			if _, _, err := n.Blocked(t.Context(), common.Address{1}, common.Address{2}); len(second.drain()) != 0 {
				t.Errorf("another endpoint was asked after %v", err)
			}
			// What a contract words must not pass for a refusal of the endpoint.
			if said := gate.last(); strings.Contains(said.Text, "exceeded") || said.Err != nil {
				t.Errorf("the gate heard %+v", said)
			}
		})
	}
}

func TestNode_AGateHearsWhatTheEndpointSaid(t *testing.T) {
	t.Parallel()
	first := newSwitched(t, nil)
	gate := &testGate{}
	n, _ := over(t, []Gate{gate}, first)
	ask := func() { _, _ = n.Balance(t.Context(), common.Address{1}) }
	ask()
	if said := gate.last(); said != (Said{}) {
		t.Errorf("an answer: %+v", said)
	}
	first.turn(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		status(http.StatusTooManyRequests)(w, r)
	})
	ask()
	if said := gate.last(); said.Status != 429 || said.RetryAfter != 7*time.Second || said.Text != "over the limit " || said.Err == nil {
		t.Errorf("HTTP: %+v", said)
	}
	first.turn(errorObject(`{"code":-32005,"message":"daily\nlimit"}`))
	ask()
	if said := gate.last(); said.Code != -32005 || said.Text != "daily limit" || said.Err != nil {
		t.Errorf("JSON-RPC: %+v", said)
	}
}

func TestNode_StaysWithWhatWorksAndGoesBackToWhatHasRested(t *testing.T) {
	t.Parallel()
	first, second := newSwitched(t, nil), newSwitched(t, nil)
	n, clock := over(t, nil, first, second)
	ask := func() (byFirst, bySecond int) {
		t.Helper()
		if _, err := n.Balance(t.Context(), common.Address{1}); err != nil {
			t.Fatal(err)
		}
		return len(first.drain()), len(second.drain())
	}
	ask()
	first.turn(status(http.StatusBadGateway))
	ask()
	clock.pass(5*time.Second - 1)
	if a, b := ask(); a != 0 || b != 1 {
		t.Errorf("just before its rest ends: asked %d and %d times, want 0 and 1", a, b)
	}
	clock.pass(1)
	if a, b := ask(); a != 1 || b != 1 {
		t.Errorf("after its rest: asked %d and %d times, want 1 each", a, b)
	}
	clock.pass(10*time.Second - 1)
	if a, b := ask(); a != 0 || b != 1 {
		t.Errorf("its rest has not doubled: asked %d and %d times, want 0 and 1", a, b)
	}
	first.turn(nil)
	clock.pass(1)
	if a, b := ask(); a != 2 || b != 0 { // which chain it serves, and the call
		t.Errorf("once it works again: asked %d and %d times, want 2 and 0", a, b)
	}
	if a, b := ask(); a != 1 || b != 0 {
		t.Errorf("from then on: asked %d and %d times, want 1 and 0", a, b)
	}
}

func TestNode_WhereNoneAnswersTheyAreAllTriedAndSaid(t *testing.T) {
	t.Parallel()
	first, second := newSwitched(t, nil), newSwitched(t, nil)
	n, _ := over(t, nil, first, second)
	first.turn(status(http.StatusBadGateway))
	second.turn(status(http.StatusServiceUnavailable))
	for range 2 { // while they rest, too: a try costs less than none
		_, err := n.Balance(t.Context(), common.Address{1})
		if _, ok := errors.AsType[*Trouble](err); !ok || !strings.Contains(err.Error(), "RPC endpoint 1: HTTP status 502") ||
			!strings.Contains(err.Error(), "RPC endpoint 2: HTTP status 503") || strings.Contains(err.Error(), first.URL) {
			t.Errorf("%v", err)
		}
	}
	second.turn(nil)
	if _, err := n.Balance(t.Context(), common.Address{1}); err != nil {
		t.Errorf("one is back: %v", err)
	}
}

func TestNode_TheGateThatOpensFirstIsFoundWhereAllAreShut(t *testing.T) {
	t.Parallel()
	first, second, third := newSwitched(t, nil), newSwitched(t, nil), newSwitched(t, nil)
	gates := []*testGate{{}, {}, {refused: func(s Said) error { return limits(s) }}}
	n, _ := over(t, []Gate{gates[0], gates[1], gates[2]}, first, second, third)
	soon, late := startOfTest.Add(time.Minute), startOfTest.Add(time.Hour)
	gates[0].no.Store(&HeldError{late, errLimit})
	gates[1].no.Store(&HeldError{soon, errLimit})
	if _, err := n.Balance(t.Context(), common.Address{1}); err != nil {
		t.Errorf("the third is open: %v", err)
	}
	third.turn(status(http.StatusPaymentRequired))
	_, err := n.Balance(t.Context(), common.Address{1})
	held, ok := errors.AsType[*HeldError](err)
	if !ok || !held.Until.Equal(soon) || !errors.Is(err, errLimit) {
		t.Errorf("all shut: %v with %+v, want the one that opens first", err, held)
	}
	if len(first.drain())+len(second.drain()) != 0 {
		t.Error("an endpoint was asked behind a gate that is shut")
	}
	// An endpoint that is only not reached may be back long before.
	third.turn(status(http.StatusBadGateway))
	_, err = n.Balance(t.Context(), common.Address{1})
	if _, ok := errors.AsType[*HeldError](err); ok || errors.Is(err, errLimit) || !strings.Contains(err.Error(), errLimit.Error()) {
		t.Errorf("one is not reached: %v, want the gates' no said and not found", err)
	}
}

func TestNode_AnEndpointThatHangsLeavesTimeForTheNext(t *testing.T) {
	t.Parallel()
	first, second := newSwitched(t, nil), newSwitched(t, nil)
	n, _ := over(t, nil, first, second)
	if _, err := n.Balance(t.Context(), common.Address{1}); err != nil {
		t.Fatal(err)
	}
	first.turn(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience+time.Second)
	defer cancel()
	if _, err := n.Balance(ctx, common.Address{1}); err != nil {
		t.Errorf("%v, want the second endpoint's answer within the caller's time", err)
	}
	first.drain()
	if _, err := n.Balance(t.Context(), common.Address{1}); err != nil || len(first.drain()) > 0 {
		t.Errorf("%v, want the second asked at once", err)
	}
}

func TestNode_ACallerThatLeavesBlamesNoEndpoint(t *testing.T) {
	t.Parallel()
	first, second := newSwitched(t, nil), newSwitched(t, nil)
	n, _ := over(t, nil, first, second)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := n.Balance(ctx, common.Address{1}); err != nil {
		t.Fatal(err)
	}
	first.turn(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := n.Balance(ctx, common.Address{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the caller left", err)
	}
	if n.endpoints[0].failures != 0 || len(second.drain()) != 0 {
		t.Errorf("the first has %d failures, want 0 and the second not asked", n.endpoints[0].failures)
	}
}

func TestNode_AnEndpointThatIsBehindDoesNotTakeOver(t *testing.T) {
	t.Parallel()
	const newest = 0x100
	for behind, takes := range map[uint64]bool{0: true, lagMax: true, lagMax + 1: false, newest: false} {
		first := newSwitched(t, nil)
		second := newSwitched(t, fakeNode{"eth_blockNumber": `"` + hexOf(newest-behind) + `"`, "eth_getBlockByNumber": headJSON(newest - behind)})
		n, clock := over(t, nil, first, second)
		if _, err := n.FreshHead(t.Context()); err != nil {
			t.Fatal(err)
		}
		first.turn(status(http.StatusBadGateway))
		_, err := n.Balance(t.Context(), common.Address{1})
		if takes != (err == nil) || !takes && !errors.Is(err, errLags) {
			t.Errorf("%d blocks behind: %v, want that it takes over: %v", behind, err, takes)
		}
		// What nobody has shown for long is believed no more: it may never have been.
		clock.pass(newestKept + time.Second)
		if _, err := n.Balance(t.Context(), common.Address{1}); err != nil {
			t.Errorf("%d blocks behind what was shown long ago: %v", behind, err)
		}
	}
}

func TestNode_FreshHead_LeavesAnEndpointThatHasStopped(t *testing.T) {
	t.Parallel()
	first, second := newSwitched(t, nil), newSwitched(t, nil)
	n, clock := over(t, nil, first, second)
	if _, err := n.FreshHead(t.Context()); err != nil || len(second.drain()) != 0 {
		t.Fatalf("while the first goes on: %v", err)
	}
	clock.pass(stuckAfter + 2*time.Second)
	// Both are as old now. The chain itself has stopped, and nobody is better.
	if _, err := n.FreshHead(t.Context()); !errors.Is(err, errStuck) {
		t.Errorf("both have stopped: %v, want %v", err, errStuck)
	}
	second.turn(fakeNode{"eth_chainId": `"0x14a34"`, "eth_blockNumber": `"0x101"`, "eth_getBlockByNumber": headAt(0x101, clock.now())}.ServeHTTP)
	if head, err := n.FreshHead(t.Context()); err != nil || head.Number != 0x101 {
		t.Errorf("the second goes on: %+v, %v", head, err)
	}
}

// A node that names a block which cannot be there would shut the honest ones out for as long as it does.
func TestNode_AnEndpointThatIsTooFarAheadDoesNotTakeOver(t *testing.T) {
	t.Parallel()
	const newest = 0x100
	for name, tt := range map[string]struct {
		head  uint64
		after time.Duration
		takes bool
	}{
		"as many as are allowed":     {newest + lagMax, 0, true},
		"one more":                   {newest + lagMax + 1, 0, false},
		"it grew for a minute":       {newest + lagMax + 60*leapPerSecond, time.Minute, true},
		"it cannot have grown so":    {newest + lagMax + 60*leapPerSecond + 1, time.Minute, false},
		"a number that is nonsense":  {1_000_000_000_000, time.Minute, false},
		"a number past what is kept": {1<<64 - 1, time.Minute, false},
	} {
		first := newSwitched(t, nil)
		second := newSwitched(t, fakeNode{"eth_blockNumber": `"` + hexOf(tt.head) + `"`})
		n, clock := over(t, nil, first, second)
		if _, err := n.FreshHead(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.pass(tt.after)
		first.turn(status(http.StatusBadGateway))
		_, err := n.Balance(t.Context(), common.Address{1})
		if tt.takes != (err == nil) || !tt.takes && !errors.Is(err, errAhead) {
			t.Errorf("%s: %v, want that it takes over: %v", name, err, tt.takes)
		}
		first.turn(nil)
		clock.pass(time.Second)
		if _, err := n.Balance(t.Context(), common.Address{1}); err != nil {
			t.Errorf("%s: the first is back: %v", name, err)
		}
	}
}

func TestNode_AHeadThatCannotBeMakesNoReceiptFinal(t *testing.T) {
	t.Parallel()
	const receipt = `{"transactionHash":"0x0000000000000000000000000000000000000000000000000000000000000001",` +
		`"blockHash":"0x0000000000000000000000000000000000000000000000000000000000000002","status":"0x1","logs":[],"blockNumber":"0x100"}`
	lies := fakeNode{"eth_blockNumber": `"0xe8d4a51000"`, "eth_getTransactionReceipt": receipt, "eth_getBlockByNumber": headJSON(0xe8d4a51000)}
	first, second := newSwitched(t, fakeNode{"eth_getTransactionReceipt": receipt}), newSwitched(t, fakeNode{"eth_getTransactionReceipt": receipt})
	n, _ := over(t, nil, first, second)
	if _, err := n.FreshHead(t.Context()); err != nil {
		t.Fatal(err)
	}
	lies["eth_chainId"] = `"0x14a34"`
	first.turn(lies.ServeHTTP)
	got, err := n.Receipts(t.Context(), []common.Hash{{31: 1}})
	if err != nil || got[0].Depth != 1 {
		t.Errorf("%+v, %v, want the depth under the second's head", got, err)
	}
	first.turn(nil)
	if head, err := n.FreshHead(t.Context()); err != nil || head.Number != 0x100 {
		t.Errorf("%+v, %v, want the honest go on", head, err)
	}
}

// Where we were away, or the chain is faster than any, the one word would stand against the other for long.
func TestNode_AHeadThatTwoEndpointsHaveReachedIsBelieved(t *testing.T) {
	t.Parallel()
	far := fakeNode{"eth_blockNumber": `"0x10000"`, "eth_getBlockByNumber": headJSON(0x10000)}
	first, second := newSwitched(t, nil), newSwitched(t, far)
	n, _ := over(t, nil, first, second)
	if _, err := n.FreshHead(t.Context()); err != nil {
		t.Fatal(err)
	}
	far["eth_chainId"] = `"0x14a34"`
	first.turn(far.ServeHTTP)
	if head, err := n.FreshHead(t.Context()); err != nil || head.Number != 0x10000 {
		t.Errorf("%+v, %v, want what both show", head, err)
	}
}

// A node that syncs counts up from long ago: who is where the chain is must not pass for a liar beside it.
func TestNode_AHeadOfLongAgoBeginsNoCount(t *testing.T) {
	t.Parallel()
	syncs := fakeNode{"eth_blockNumber": `"0x10"`, "eth_getTransactionReceipt": `null`, "eth_getBlockByNumber": headAt(0x10, startOfTest.Add(-time.Hour))}
	first, second := newSwitched(t, syncs), newSwitched(t, nil)
	n, _ := over(t, nil, first, second)
	if _, err := n.Receipts(t.Context(), []common.Hash{{31: 1}}); err != nil {
		t.Fatal(err)
	}
	if head, err := n.FreshHead(t.Context()); err != nil || head.Number != 0x100 {
		t.Errorf("%+v, %v, want the second's", head, err)
	}
}
