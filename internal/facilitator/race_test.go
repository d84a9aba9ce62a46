package facilitator

import (
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
)

// staleNonce is a node that has not seen any transaction of anybody.
func staleNonce(method string, _ []json.RawMessage) string {
	if method == "eth_getTransactionCount" {
		return `"result":"0x0"`
	}
	return ""
}

// B90: an authorization that somebody else sent has paid as well.
func TestEngine_Settle_WhoeverSentItHasPaidIt(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	s := g.authorize(t, 100, nil)
	foreign := g.sendAs(t, g.stranger, s, 1)
	eventually(t, "the stranger's transaction is mined", func() bool {
		used, err := g.node.AuthorizationUsed(t.Context(), s.Asset, s.From, s.Nonce)
		return err == nil && used
	})
	got := g.settle(t, e, s)
	g.wantSettled(t, s, got)
	if all, _ := g.transactions(t); got.Transaction != foreign || all != 0 {
		t.Errorf("settled by %s with %d transactions of ours, want %s and none", got.Transaction, all, foreign)
	}
}

func TestEngine_Settle_OvertakenInThePoolItIsPaidAllTheSame(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	s := g.authorize(t, 100, nil)
	g.Pause()
	done := make(chan chain.Settlement, 1)
	go func() { done <- g.settle(t, e, s) }()
	g.poolHas(t, g.gas.Address(), 1)
	foreign := g.sendAs(t, g.stranger, s, 50) // a higher fee goes first
	g.Resume()
	got := <-done
	g.wantSettled(t, s, got)
	if got.Transaction != foreign {
		t.Errorf("settled by %s, want %s", got.Transaction, foreign)
	}
	if b := g.balance(t, g.treasury.Address()); b != "100" {
		t.Errorf("treasury has %s, want 100", b)
	}
}

func TestEngine_Settle_AnUndoneTransactionNeverReleases(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	run(t, e)
	s := g.authorize(t, funds, nil)
	drain := g.authorize(t, 1, func(a *chain.Authorization) { a.To = g.stranger.Address() })
	g.Pause()
	done := make(chan chain.Settlement, 1)
	go func() { done <- g.settle(t, e, s) }()
	g.poolHas(t, g.gas.Address(), 1)
	g.sendAs(t, g.stranger, drain, 50)
	g.Resume()
	first := <-done
	want := func(name string, got chain.Settlement) {
		t.Helper()
		if got.Status != chain.StatusRejected || got.Why != "insufficient_funds" || !got.PayerFault || got.Transaction != first.Transaction {
			t.Errorf("%s: %+v, want rejected for funds by %s", name, got, first.Transaction)
		}
	}
	if first.Transaction == (common.Hash{}) {
		t.Fatalf("settlement = %+v, want its transaction", first)
	}
	want("first", first)
	eventually(t, "the undone transaction is closed", func() bool { _, open := g.transactions(t); return open == 0 })
	want("again, once that is final", g.settle(t, e, s))
	if err := g.SetPaused(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := g.settle(t, e, s); got.Status != chain.StatusUnknown || got.PayerFault {
		t.Errorf("while the token is paused: %+v, want unknown", got)
	}
	if err := g.SetPaused(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := g.Mint(t.Context(), g.payer.Address(), drain.Value); err != nil {
		t.Fatal(err)
	}
	// The payer can pay after all: an undone transaction that is final allows another one.
	again := g.settle(t, e, s)
	g.wantSettled(t, s, again)
	if again.Transaction == first.Transaction {
		t.Error("settled by the transaction that was undone")
	}
}

func TestEngine_Settle_AUsedNonceWithoutLogsToReadIsUnknown(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.authorize(t, 100, nil)
	g.sendAs(t, g.stranger, s, 1)
	eventually(t, "the stranger's transaction is mined", func() bool {
		used, err := g.node.AuthorizationUsed(t.Context(), s.Asset, s.From, s.Nonce)
		return err == nil && used
	})
	blind := edge(t, g.URL(), func(method string, _ []json.RawMessage) string {
		if method == "eth_getLogs" {
			return brokenMember
		}
		return ""
	})
	got := g.settle(t, g.engine(t, g.dial(t, blind), nil), s)
	if got.Status != chain.StatusUnknown || got.PayerFault {
		t.Errorf("settlement = %+v, want unknown: it may have paid", got)
	}
}

// B82: a node that fails now and then is no refusal of the payment.
func TestEngine_Settle_TriesAgainWhileTheNodeIsInTrouble(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	tests := map[string]struct {
		failures int64
		want     chain.Status
	}{
		"twice, and then an answer": {2, chain.StatusSettled},
		"as often as we ask":        {1000, chain.StatusReleased},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			flaky := edge(t, g.URL(), func(method string, _ []json.RawMessage) string {
				if method == "eth_call" && asked.Add(1) <= tt.failures {
					return brokenMember
				}
				return ""
			})
			got := g.settle(t, g.engine(t, g.dial(t, flaky), nil), g.authorize(t, 100, nil))
			var trouble *chain.Trouble
			if got.Status != tt.want || got.PayerFault || (tt.want == chain.StatusReleased && (got.Why != whyTrouble || !errors.As(got.Err, &trouble))) {
				t.Errorf("settlement = %+v, want status %d", got, tt.want)
			}
			if n := asked.Load(); n > 3 {
				t.Errorf("simulated %d times, want at most 3", n)
			}
		})
	}
}

func TestEngine_Settle_ARevertIsNotAskedTwice(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	var asked atomic.Int64
	counting := edge(t, g.URL(), func(method string, _ []json.RawMessage) string {
		if method == "eth_call" {
			asked.Add(1)
		}
		return ""
	})
	g.settle(t, g.engine(t, g.dial(t, counting), nil), g.authorize(t, funds+1, nil))
	if n := asked.Load(); n != 1 {
		t.Errorf("simulated %d times, want once", n)
	}
}

func TestEngine_Settle_CountsTransactionsFromElsewhere(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	first := g.authorize(t, 100, nil)
	g.wantSettled(t, first, g.settle(t, e, first))
	// Somebody uses the gas key by hand, once mined and once still in the pool.
	g.send(t, g.gas, g.stranger.Address(), nil, 1)
	eventually(t, "the foreign transaction is mined", func() bool {
		tip, err := g.node.Tip(t.Context(), g.gas.Address())
		return err == nil && tip.MinedNonce == 2
	})
	g.Pause()
	g.send(t, g.gas, g.stranger.Address(), nil, 1)
	second := g.authorize(t, 100, nil)
	done := make(chan chain.Settlement, 1)
	go func() { done <- g.settle(t, e, second) }()
	g.poolHas(t, g.gas.Address(), 2)
	g.Resume()
	g.wantSettled(t, second, <-done)
	var nonce int
	if err := g.db.QueryRow(t.Context(), `SELECT max(nonce) FROM engine_transactions`).Scan(&nonce); err != nil || nonce != 3 {
		t.Errorf("nonce = %d, %v, want 3", nonce, err)
	}
}

// A refund whose first signature has lapsed is signed anew, with the same nonce and the same contents but for the time.
func TestEngine_Settle_ASecondSignatureOfOneNonceMovesTheMoneyOnce(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	first := g.authorize(t, 100, nil)
	second := g.authorize(t, 100, func(a *chain.Authorization) { a.Nonce, a.ValidBefore = first.Nonce, first.ValidBefore+600 })
	g.Pause()
	results := make(chan chain.Settlement, 2)
	go func() { results <- g.settle(t, e, first) }()
	g.poolHas(t, g.gas.Address(), 1)
	go func() { results <- g.settle(t, e, second) }()
	waiting(t, 2, e)
	g.Resume()
	a, b := <-results, <-results
	g.wantSettled(t, first, a)
	g.wantSettled(t, second, b)
	// The second one rides on the first one's transaction, so one of them alone has proved that we settle.
	if all, _ := g.transactions(t); a.ByUs == b.ByUs || a.Proof != b.Proof || all != 1 {
		t.Errorf("settled as %+v and %+v in %d transactions, want one", a, b, all)
	}
}

// A payer can sign two payments of different values with one nonce. Whichever the chain takes, the other has not paid.
func TestEngine_Settle_TwoValuesOfOneNonceAreNotBothPaid(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	dear := g.authorize(t, 100, nil)
	cheap := g.authorize(t, 1, func(a *chain.Authorization) { a.Nonce = dear.Nonce })
	g.Pause()
	first := make(chan chain.Settlement, 1)
	go func() { first <- g.settle(t, e, cheap) }()
	g.poolHas(t, g.gas.Address(), 1)
	second := make(chan chain.Settlement, 1)
	go func() { second <- g.settle(t, e, dear) }()
	waiting(t, 2, e)
	g.Resume()
	g.wantSettled(t, cheap, <-first)
	if got := <-second; got.Status != chain.StatusReleased || got.Why != "invalid_exact_evm_nonce_already_used" || !got.PayerFault {
		t.Errorf("the other value: %+v, want released, nonce used", got)
	}
	if b := g.balance(t, g.treasury.Address()); b != "1" {
		t.Errorf("treasury has %s, want 1", b)
	}
}

func TestEngine_Settle_ACommitWithoutACertainAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	const breakSQL = `
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the server goes away'; END $$;
CREATE CONSTRAINT TRIGGER fail_at_commit AFTER INSERT ON engine_transactions
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail()`
	if _, err := g.db.Exec(t.Context(), breakSQL); err != nil {
		t.Fatal(err)
	}
	s := g.authorize(t, 100, nil)
	got := g.settle(t, e, s)
	if got.Status != chain.StatusUnknown || got.Why != whyPending || got.Transaction == (common.Hash{}) || !errors.Is(got.Err, errUnsure) {
		t.Fatalf("settlement = %+v, want unknown with the transaction that may be stored", got)
	}
	if _, err := g.db.Exec(t.Context(), `DROP TRIGGER fail_at_commit ON engine_transactions`); err != nil {
		t.Fatal(err)
	}
	g.wantSettled(t, s, g.settle(t, e, s))
}

// A transaction that is undone because the token was paused meanwhile says nothing against a contract wallet.
func TestEngine_Settle_AWalletIsNotBlamedForWhatStopsEverybody(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.wallet(t, devnet.MoodHonest)()
	e := g.engine(t, g.node, nil)
	g.Pause()
	done, paused := make(chan chain.Settlement, 1), make(chan error, 1)
	go func() { paused <- g.SetPaused(t.Context(), true) }() // sent first and of the same fee, so mined first
	g.poolHas(t, g.Owner(), 1)
	go func() { done <- g.settle(t, e, s) }()
	g.poolHas(t, g.gas.Address(), 1)
	g.Resume()
	if err := <-paused; err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.Status != chain.StatusRejected || got.PayerFault || got.Why != whyFailed {
		t.Errorf("settlement = %+v, want rejected, and nobody blamed", got)
	}
}
