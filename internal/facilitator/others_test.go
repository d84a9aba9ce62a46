package facilitator

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// forOthers is an engine that may pay the treasury as if it were somebody else's.
func (g *ground) forOthers(t *testing.T) *Engine {
	t.Helper()
	return g.engine(t, g.node, func(o *Options) {
		o.Treasuries, o.Recipients = nil, func(to common.Address) bool { return to == g.treasury.Address() }
	})
}

// B15: an engine for others pays no gas for a recipient that nobody named, nor for a token that is not configured.
func TestEngine_Settle_ForOthersMovesMoneyToTheirRecipientsOnly(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.forOthers(t)
	good := g.authorize(t, 100, nil)
	elsewhere := g.authorize(t, 100, func(a *chain.Authorization) { a.To = g.stranger.Address() })
	token := good
	token.Asset = common.Address{1}
	for name, s := range map[string]chain.Signed{"another recipient": elsewhere, "another token": token} {
		if got := g.settle(t, e, s); got.Status != chain.StatusReleased || got.PayerFault {
			t.Errorf("%s: %+v, want it released", name, got)
		}
		var revert *chain.Revert
		if err := e.Simulate(t.Context(), s); err == nil || errors.As(err, &revert) {
			t.Errorf("%s: simulated with %v, want our own no", name, err)
		}
	}
	g.wantSettled(t, good, g.settle(t, e, good))
	if all, _ := g.transactions(t); all != 1 {
		t.Errorf("%d transactions, want 1", all)
	}
}

// An engine of our own tries again once the payer can pay: see TestEngine_Settle_AnUndoneTransactionNeverReleases.
func TestEngine_Settle_ForOthersSendsNothingAfterATransactionThatWasUndone(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.forOthers(t)
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
	eventually(t, "the undone transaction is closed", func() bool { _, open := g.transactions(t); return open == 0 })
	if err := g.Mint(t.Context(), g.payer.Address(), drain.Value); err != nil {
		t.Fatal(err)
	}
	again := g.settle(t, e, s)
	if again.Status != chain.StatusRejected || again.Transaction != first.Transaction || again.Transaction == (common.Hash{}) {
		t.Errorf("%+v after %+v, want it rejected by the same transaction", again, first)
	}
	if all, _ := g.transactions(t); all != 1 {
		t.Errorf("%d transactions, want 1", all)
	}
}

func TestEngine_Simulate_SaysWhatTheAssetWouldAndShowsNothing(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.forOthers(t)
	s, dear := g.authorize(t, 100, nil), g.authorize(t, funds+1, nil)
	if err := e.Simulate(t.Context(), s); err != nil {
		t.Errorf("a good one: %v", err)
	}
	var revert *chain.Revert
	if err := e.Simulate(t.Context(), dear); !errors.As(err, &revert) || revert.Kind != chain.RevertInsufficient {
		t.Errorf("without the money: %v, want the asset's refusal", err)
	}
	if shown, err := e.Shown(t.Context(), s); shown || err != nil {
		t.Errorf("shown = %v, %v, want no", shown, err)
	}
	if all, _ := g.transactions(t); all != 0 {
		t.Errorf("%d transactions, want none", all)
	}
}

func TestEngine_Shown_KnowsWhatIsSignedAndWhatIsUsed(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.forOthers(t)
	signed, sent := g.authorize(t, 100, nil), g.authorize(t, 100, nil)
	g.sendAs(t, g.stranger, sent, 1)
	eventually(t, "the stranger's transaction is mined", func() bool {
		shown, err := e.Shown(t.Context(), sent)
		return err == nil && shown
	})
	g.Pause()
	g.interrupted(t, e, signed, g.stored(t, 1))
	if shown, err := e.Shown(t.Context(), signed); !shown || err != nil {
		t.Errorf("signed and not mined: shown = %v, %v, want yes", shown, err)
	}
	g.Resume()
}

// The asset looks at the time first, so an expired authorization that has paid looks like one that can not pay any more.
func TestEngine_Settle_AnExpiredPaymentThatSomebodyElseSentHasPaid(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.forOthers(t)
	paid := g.authorize(t, 100, func(a *chain.Authorization) { a.ValidBefore -= 590 })
	unpaid := g.authorize(t, 100, func(a *chain.Authorization) { a.ValidBefore -= 590 })
	foreign := g.sendAs(t, g.stranger, paid, 1)
	eventually(t, "the stranger's transaction is mined", func() bool {
		used, err := g.node.AuthorizationUsed(t.Context(), paid.Asset, paid.From, paid.Nonce)
		return err == nil && used
	})
	if err := g.Elapse(t.Context(), 12); err != nil {
		t.Fatal(err)
	}
	got := g.settle(t, e, paid)
	g.wantSettled(t, paid, got)
	if got.Transaction != foreign {
		t.Errorf("settled by %s, want %s", got.Transaction, foreign)
	}
	if got := g.settle(t, e, unpaid); got.Status != chain.StatusReleased || got.Why != "invalid_exact_evm_payload_authorization_valid_before" || !got.PayerFault {
		t.Errorf("expired and unused: %+v, want it released, its time over", got)
	}
}
