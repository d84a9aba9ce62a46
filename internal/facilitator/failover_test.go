package facilitator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/facilitator/remote"
)

// A teller is somebody else's facilitator for one authorization. It answers what the test has it say, after doing what the test has it do.
type teller struct {
	*httptest.Server
	asked atomic.Int32
}

// says is an answer of a teller; do runs before it.
type says struct {
	status int
	body   map[string]any // nil: text
	text   string
	do     func()
}

func yes(s chain.Signed, transaction common.Hash) map[string]any {
	return map[string]any{"success": true, "transaction": transaction.Hex(), "network": devnet.NetworkID, "payer": s.From.Hex()}
}

func no(reason string) map[string]any { return map[string]any{"success": false, "errorReason": reason} }

func newTeller(t *testing.T, answer says) *teller {
	t.Helper()
	d := &teller{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /supported", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kinds":[{"x402Version":2,"scheme":"exact","network":"`+devnet.NetworkID+`"}]}`)
	})
	mux.HandleFunc("POST /settle", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		d.asked.Add(1)
		if answer.do != nil {
			answer.do()
		}
		if answer.status == 0 { // it never answers
			<-r.Context().Done()
			return
		}
		w.WriteHeader(answer.status)
		if answer.body != nil {
			_ = json.NewEncoder(w).Encode(answer.body)
			return
		}
		_, _ = io.WriteString(w, answer.text)
	})
	d.Server = httptest.NewServer(mux)
	t.Cleanup(d.Close)
	return d
}

// link returns it as a link that has said what it supports.
func (d *teller) link(t *testing.T) Link {
	t.Helper()
	c, err := remote.New(remote.Options{Name: "teller", URL: d.URL, Resource: "https://market.example"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	return Link{Remote: c}
}

func (g *ground) failover(links ...Link) *Failover {
	return NewFailover(g.node, []common.Address{g.treasury.Address()}, links, time.Now)
}

// gives puts the transaction that a facilitator has sent, or found, into its answer.
func gives(body map[string]any, transaction func() common.Hash) says {
	return says{200, body, "", func() { body["transaction"] = transaction().Hex() }}
}

// drains spends all money of the payer, which has it back at the end of the test.
func (g *ground) drains(t *testing.T, e *Engine) func() {
	return func() {
		all, err := g.BalanceOf(t.Context(), g.payer.Address())
		if err != nil {
			t.Error(err)
		}
		t.Cleanup(func() {
			if err := g.Mint(context.WithoutCancel(t.Context()), g.payer.Address(), all); err != nil {
				t.Error(err)
			}
		})
		g.settle(t, e, g.authorize(t, 0, func(a *chain.Authorization) { a.Value = all }))
	}
}

// What one facilitator says about one authorization that our own node would pay, and what is made of it. The second half of each name says
// what our own node can see.
func TestFailover_Settle_AWordIsWorthWhatOurNodeSees(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	engine := g.engine(t, g.node, nil)
	nobody := common.HexToHash("0x5e77aa0000000000000000000000000000000000000000000000000000000001")
	mined := func(t *testing.T, s chain.Signed) func() common.Hash {
		return func() common.Hash { return g.settle(t, engine, s).Transaction }
	}
	answers := func(status int, body map[string]any, do func()) func(*testing.T, chain.Signed) says {
		return func(*testing.T, chain.Signed) says { return says{status, body, "", do} }
	}
	poor := func(reason string) func(*testing.T, chain.Signed) says {
		return func(t *testing.T, _ chain.Signed) says { return says{200, no(reason), "", g.drains(t, engine)} }
	}
	for name, tt := range map[string]struct {
		answer func(t *testing.T, s chain.Signed) says
		status chain.Status
		why    string
		fault  bool // the payer's
	}{
		"a yes, and it is there": {func(t *testing.T, s chain.Signed) says {
			return gives(yes(s, nobody), mined(t, s))
		}, chain.StatusSettled, "", false},
		"a yes about another transaction, and it is there": {func(t *testing.T, s chain.Signed) says {
			return says{200, yes(s, nobody), "", func() { mined(t, s)() }}
		}, chain.StatusSettled, "", false},
		"a yes about what paid somebody else": {func(t *testing.T, s chain.Signed) says {
			return gives(yes(s, nobody), mined(t, g.authorize(t, 10, nil)))
		}, chain.StatusUnknown, whyMismatch, false},
		"a yes about nothing": {func(_ *testing.T, s chain.Signed) says { return says{200, yes(s, nobody), "", nil} }, chain.StatusUnknown, whyPending, false},
		"HTML, and it is there": {func(t *testing.T, s chain.Signed) says {
			return says{200, nil, "<html>", func() { mined(t, s)() }}
		}, chain.StatusSettled, "", false},
		"a no, and it is there": {func(t *testing.T, s chain.Signed) says {
			return says{200, no("insufficient_funds"), "", func() { mined(t, s)() }}
		}, chain.StatusSettled, "", false},
		"no funds, and that is true":                 {poor("insufficient_funds"), chain.StatusRejected, "insufficient_funds", true},
		"no funds, and that is a lie":                {answers(200, no("insufficient_funds"), nil), chain.StatusUnknown, whyTrouble, false},
		"a bad signature, and that is a lie":         {answers(200, no("invalid_exact_evm_signature"), nil), chain.StatusUnknown, whyTrouble, false},
		"it would fail, and there are no funds":      {poor("invalid_exact_evm_transaction_simulation_failed"), chain.StatusRejected, "insufficient_funds", true},
		"trouble of its own, and there are no funds": {poor("unexpected_settle_error"), chain.StatusUnknown, whyTrouble, false},
		"the nonce is used, and that is true": {func(t *testing.T, s chain.Signed) says {
			return says{200, no("invalid_exact_evm_nonce_already_used"), "", func() {
				g.settle(t, engine, g.authorize(t, 1, func(a *chain.Authorization) { a.Nonce = s.Nonce }))
			}}
		}, chain.StatusRejected, "invalid_exact_evm_nonce_already_used", true},
		"the nonce is used, and that is a lie": {answers(200, no("invalid_exact_evm_nonce_already_used"), nil), chain.StatusUnknown, whyTrouble, false},
		"our credential is no good":            {answers(401, nil, nil), chain.StatusUnknown, whyTrouble, false},
		"it throttles us":                      {answers(429, nil, nil), chain.StatusUnknown, whyTrouble, false},
		"it wants to be paid":                  {answers(402, nil, nil), chain.StatusUnknown, whyTrouble, false},
		"it never answers":                     {answers(0, nil, nil), chain.StatusUnknown, whyTrouble, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := g.authorize(t, 10, nil)
			d := newTeller(t, tt.answer(t, s))
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			got := g.failover(d.link(t)).Settle(ctx, s)
			if tt.status == chain.StatusSettled {
				g.wantSettled(t, s, got)
				return
			}
			if got.Status != tt.status || got.Why != tt.why || got.PayerFault != tt.fault || got.Err == nil {
				t.Errorf("settlement = %+v, want status %d, %s, payer's fault %v", got, tt.status, tt.why, tt.fault)
			}
			if d.asked.Load() != 1 {
				t.Errorf("the facilitator was asked %d times, want once", d.asked.Load())
			}
		})
	}
}

// Two facilitators in order. The second has to settle what the first could not be shown or left unclear, and the first is not tried before
// the second again at once.
func TestFailover_Settle_TheNextOneSettlesWhatTheFirstLeftUnclear(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	engine := g.engine(t, g.node, nil)
	for name, tt := range map[string]struct {
		answer says
		gone   bool
	}{
		"it is confused":            {says{502, nil, "<html>", nil}, false},
		"it lies about the payer":   {says{200, no("insufficient_funds"), "", nil}, false},
		"it has trouble of its own": {says{200, no("unexpected_settle_error"), "", nil}, false},
		"it never answers":          {says{}, false},
		"it throttles us":           {says{429, nil, "", nil}, false},
		"it is gone":                {says{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTeller(t, tt.answer)
			f := g.failover(d.link(t), Link{Engine: engine})
			if tt.gone {
				d.Close()
			}
			for round := range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				s := g.authorize(t, 10, nil)
				g.wantSettled(t, s, f.Settle(ctx, s))
				cancel()
				if n := d.asked.Load(); !tt.gone && n != 1 {
					t.Errorf("round %d: the first was asked %d times, want once", round, n)
				}
			}
		})
	}
}

// What nobody was shown may be used again, and what anybody was shown may not.
func TestFailover_Settle_IsReleasedOnlyWhereNobodyWasShownIt(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	gone := newTeller(t, says{})
	dead := gone.link(t)
	gone.Close()
	confused := newTeller(t, says{500, nil, "", nil})
	poor := g.engine(t, g.node, func(o *Options) { o.Treasuries = []common.Address{g.stranger.Address()} }) // it moves nothing of ours
	for name, tt := range map[string]struct {
		links  []Link
		units  uint64
		status chain.Status
	}{
		"nobody is there":                           {[]Link{dead, dead}, 10, chain.StatusReleased},
		"nobody is there, and we may not":           {[]Link{dead, {Engine: poor}}, 10, chain.StatusReleased},
		"one has seen it":                           {[]Link{confused.link(t), dead}, 10, chain.StatusUnknown},
		"one has seen it, in another order":         {[]Link{dead, confused.link(t)}, 10, chain.StatusUnknown},
		"one has seen it, and we may not":           {[]Link{confused.link(t), {Engine: poor}}, 10, chain.StatusUnknown},
		"we see that the payer can not pay":         {[]Link{dead, {Engine: g.engine(t, g.node, nil)}}, funds * 2, chain.StatusReleased},
		"we see it, and another one would be asked": {[]Link{confused.link(t), {Engine: g.engine(t, g.node, nil)}}, funds * 2, chain.StatusReleased},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		got := g.failover(tt.links...).Settle(ctx, g.authorize(t, tt.units, nil))
		cancel()
		if got.Status != tt.status || got.PayerFault != (tt.units > funds) || got.Err == nil {
			t.Errorf("%s: %+v, want status %d", name, got, tt.status)
		}
	}
	engine := g.engine(t, g.node, nil)
	seen := newTeller(t, says{500, nil, "", g.drains(t, engine)})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	got := g.failover(seen.link(t), Link{Engine: engine}).Settle(ctx, g.authorize(t, 10, nil))
	if got.Status != chain.StatusRejected || !got.PayerFault || got.Err == nil {
		t.Errorf("we see that the payer can not pay any more, and another one has seen it: %+v, want it rejected", got)
	}
}

func TestFailover_Ready_OneThatCanSettleIsEnough(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	gone := newTeller(t, says{})
	dead := gone.link(t)
	gone.Close()
	_ = dead.Remote.Ask(t.Context())
	good := newTeller(t, says{}).link(t)
	broke := g.engine(t, g.node, func(o *Options) { o.ReadySettlements = 1 << 40 })
	for name, tt := range map[string]struct {
		links []Link
		ready bool
	}{
		"none":                 {[]Link{dead, {Engine: broke}}, false},
		"the other one":        {[]Link{{Engine: broke}, good}, true},
		"we ourselves":         {[]Link{dead, {Engine: g.engine(t, g.node, nil)}}, true},
		"one alone, and it is": {[]Link{good}, true},
	} {
		_, err := g.failover(tt.links...).Look(t.Context())
		if (err == nil) != tt.ready {
			t.Errorf("%s: %v", name, err)
		}
		var gas *GasError
		if name == "none" && !errors.As(err, &gas) {
			t.Errorf("%v, want both reasons", err)
		}
	}
}

// A transaction of ours that waits behind a missing nonce is never mined. The others settle meanwhile: after our share of the time where nobody
// knows of it yet, and before us where the engine has said so.
func TestFailover_Settle_AStuckGasNonceIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	engine := g.engine(t, g.node, nil)
	first := g.authorize(t, 10, nil)
	g.wantSettled(t, first, g.settle(t, engine, first))
	if _, err := g.db.Exec(t.Context(), `UPDATE gas_accounts SET next_nonce = next_nonce + 2`); err != nil {
		t.Fatal(err)
	}
	var now atomic.Pointer[chain.Signed]
	body := map[string]any{"success": true, "network": devnet.NetworkID}
	good := newTeller(t, gives(body, func() common.Hash { return g.sendAs(t, g.stranger, *now.Load(), 1) }))
	f := g.failover(Link{Engine: engine}, good.link(t))
	for _, want := range []int{2, 2} { // transactions of ours, the first of them that of the start
		s := g.authorize(t, 10, nil)
		now.Store(&s)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		g.wantSettled(t, s, f.Settle(ctx, s))
		cancel()
		if all, _ := g.transactions(t); all != want {
			t.Errorf("%d transactions of ours, want %d", all, want)
		}
		if _, err := f.Look(t.Context()); err != nil {
			t.Errorf("ready says %v, though the other one is", err)
		}
	}
	if good.asked.Load() != 2 {
		t.Errorf("the other one was asked %d times, want twice", good.asked.Load())
	}
}
