package facilitator

import (
	"errors"
	"math/big"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
)

func TestEngine_Settle_MovesTheMoneyOnceAndProvesIt(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	s := g.authorize(t, 1234, nil)
	first := g.settle(t, e, s)
	g.wantSettled(t, s, first)
	// Again, which a refund that is sent once more does.
	second := g.settle(t, e, s)
	g.wantSettled(t, s, second)
	want := first
	want.ByUs = false // the first attempt's doing
	if !first.ByUs || second != want {
		t.Errorf("first = %+v and second = %+v, want the same by its transaction", first, second)
	}
	if got := g.balance(t, g.treasury.Address()); got != "1234" {
		t.Errorf("treasury has %s, want 1234", got)
	}
	if all, _ := g.transactions(t); all != 1 {
		t.Errorf("%d transactions, want 1", all)
	}
}

// B76, B79: the database hands the nonces out, whatever a stale node says.
func TestEngine_Settle_TwoReplicasShareOneKey(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	// The second replica's node never sees what waits in the pool.
	stale := edge(t, g.URL(), staleNonce)
	engines := []*Engine{g.engine(t, g.node, nil), g.engine(t, g.dial(t, stale), nil)}
	const payments = 20
	all := make([]chain.Signed, payments)
	for i := range all {
		all[i] = g.authorize(t, 100, nil)
	}
	results := make([]chain.Settlement, payments)
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { results[i] = g.settle(t, engines[i%len(engines)], s) })
	}
	wg.Wait()
	transfers := map[chain.Proof]bool{}
	for i, s := range all {
		g.wantSettled(t, s, results[i])
		transfers[results[i].Proof] = true
	}
	if len(transfers) != payments {
		t.Errorf("%d transfers for %d payments", len(transfers), payments)
	}
	if got := g.balance(t, g.treasury.Address()); got != "2000" {
		t.Errorf("treasury has %s, want 2000", got)
	}
	const gapsSQL = `SELECT count(*), min(nonce), max(nonce), count(DISTINCT nonce) FROM engine_transactions`
	var count, least, most, distinct int
	if err := g.db.QueryRow(t.Context(), gapsSQL).Scan(&count, &least, &most, &distinct); err != nil {
		t.Fatal(err)
	}
	if count != payments || least != 0 || most != payments-1 || distinct != payments {
		t.Errorf("%d transactions with %d nonces from %d to %d, want %d from 0 on", count, distinct, least, most, payments)
	}
}

func TestEngine_Settle_OneAuthorizationAtOnceIsOneTransaction(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	engines := []*Engine{g.engine(t, g.node, nil), g.engine(t, g.node, nil)}
	s := g.authorize(t, 100, nil)
	g.Pause() // so that none of them can be done before another begins
	results := make([]chain.Settlement, 10)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i] = g.settle(t, engines[i%len(engines)], s) })
	}
	waiting(t, len(results), engines...)
	g.Resume()
	wg.Wait()
	for _, r := range results {
		g.wantSettled(t, s, r)
	}
	if all, _ := g.transactions(t); all != 1 {
		t.Errorf("%d transactions, want 1", all)
	}
}

func TestEngine_Settle_ReleasesWhatWouldFail(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	head, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := g.authorize(t, 1, func(a *chain.Authorization) { a.To = g.treasury.Address() })
	cancelled := g.authorize(t, 2, func(a *chain.Authorization) { a.Nonce = other.Nonce })
	g.wantSettled(t, other, g.settle(t, e, other))
	blocked, good := g.authorize(t, 1, nil), g.authorize(t, 1, nil)
	nothing := func() error { return nil }
	tests := []struct {
		name   string
		before func() error
		s      chain.Signed
		why    string
		fault  bool
		kind   chain.RevertKind
	}{
		{"too little money", nothing, g.authorize(t, funds+1, nil), "insufficient_funds", true, chain.RevertInsufficient},
		{
			"expired", nothing, g.authorize(t, 1, func(a *chain.Authorization) { a.ValidBefore = head.Time }),
			"invalid_exact_evm_payload_authorization_valid_before", true, chain.RevertExpired,
		},
		{
			"the nonce paid something else", nothing, g.authorize(t, 1, func(a *chain.Authorization) {
				a.Nonce, a.To = other.Nonce, g.treasury.Address()
				a.Value = money.FromUnits(3)
			}),
			"invalid_exact_evm_nonce_already_used", true, chain.RevertNonceUsed,
		},
		{"the nonce paid another value", nothing, cancelled, "invalid_exact_evm_nonce_already_used", true, chain.RevertNonceUsed},
		{
			"the payer is blocked", func() error { return g.SetBlocked(t.Context(), g.payer.Address(), true) }, blocked,
			"invalid_exact_evm_transaction_simulation_failed", true, chain.RevertBlocked,
		},
		{
			"the treasury is blocked", func() error {
				return errors.Join(g.SetBlocked(t.Context(), g.payer.Address(), false), g.SetBlocked(t.Context(), g.treasury.Address(), true))
			}, blocked,
			"invalid_exact_evm_transaction_simulation_failed", false, chain.RevertBlocked,
		},
		{
			"the token is paused", func() error {
				return errors.Join(g.SetBlocked(t.Context(), g.treasury.Address(), false), g.SetPaused(t.Context(), true))
			}, good,
			"invalid_exact_evm_transaction_simulation_failed", false, chain.RevertPaused,
		},
	}
	for _, tt := range tests { // in order: each undoes what the one before it did to the token
		if err := tt.before(); err != nil {
			t.Fatal(err)
		}
		got := g.settle(t, e, tt.s)
		var revert *chain.Revert
		if got.Status != chain.StatusReleased || got.Why != tt.why || got.PayerFault != tt.fault || got.Transaction != (common.Hash{}) ||
			!errors.As(got.Err, &revert) || revert.Kind != tt.kind {
			t.Errorf("%s: %+v, want released, %s, payer's fault %v, kind %d", tt.name, got, tt.why, tt.fault, tt.kind)
		}
	}
	if all, _ := g.transactions(t); all != 1 {
		t.Errorf("%d transactions, want that of the one good payment", all)
	}
	// Released means that the same may be sent again.
	if err := g.SetPaused(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	g.wantSettled(t, good, g.settle(t, e, good))
}

func TestEngine_Settle_ALyingTokenIsNotPaid(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]devnet.Lie{"silent": devnet.Silent, "used only": devnet.UsedOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			e := g.engine(t, g.node, nil)
			if err := g.SetLie(t.Context(), lie); err != nil {
				t.Fatal(err)
			}
			s := g.authorize(t, 100, nil)
			got := g.settle(t, e, s)
			if got.Status != chain.StatusUnknown || got.Why != whyMismatch || got.PayerFault || got.Transaction == (common.Hash{}) {
				t.Errorf("settlement = %+v, want unknown, %s", got, whyMismatch)
			}
			if got := g.balance(t, g.treasury.Address()); got != "0" {
				t.Errorf("treasury has %s", got)
			}
		})
	}
}

func TestEngine_Settle_WhatIsNotMinedInTimeIsPendingAndNotDoubled(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	s := g.authorize(t, 100, nil)
	g.Pause()
	pending := g.interrupted(t, e, s, g.pooled(t, g.gas.Address(), 1))
	g.Resume()
	// Another replica, after a restart for all it knows.
	again := g.settle(t, g.engine(t, g.node, nil), s)
	g.wantSettled(t, s, again)
	if again.Transaction != pending.Transaction {
		t.Errorf("transaction = %s, want %s again", again.Transaction, pending.Transaction)
	}
	if all, _ := g.transactions(t); all != 1 {
		t.Errorf("%d transactions, want 1", all)
	}
}

func TestEngine_Settle_WaitsForTheConfiguredDepth(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.network.ServeAtDepth, g.network.Confirmations = 3, 5
	e := g.engine(t, g.dial(t, g.URL()), nil)
	s := g.authorize(t, 100, nil)
	got := g.settle(t, e, s)
	g.wantSettled(t, s, got)
	head, err := g.node.FreshHead(t.Context())
	if err != nil || head.Number < got.Proof.BlockNumber+2 {
		t.Errorf("settled in block %d under head %d, %v, want depth 3", got.Proof.BlockNumber, head.Number, err)
	}
}

// B83: only configured assets, and only to or from our own wallets.
func TestEngine_Settle_MovesOnlyWhatIsOurs(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	asset := g.authorize(t, 1, nil)
	asset.Asset[0] ^= 1
	for name, s := range map[string]chain.Signed{
		"between strangers": g.authorize(t, 1, func(a *chain.Authorization) { a.To = g.stranger.Address() }),
		"another asset":     asset,
	} {
		if got := g.settle(t, e, s); got.Status != chain.StatusReleased || got.PayerFault || got.Err == nil {
			t.Errorf("%s: %+v, want released", name, got)
		}
	}
	if all, _ := g.transactions(t); all != 0 {
		t.Errorf("%d transactions, want none", all)
	}
}

func TestEngine_Settle_AnEmptyGasWalletSendsNothing(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e, err := NewEngine(g.node, g.db, newKey(t), Options{Treasuries: []common.Address{g.treasury.Address()}})
	if err != nil {
		t.Fatal(err)
	}
	got := g.settle(t, e, g.authorize(t, 1, nil))
	var empty *GasError
	if got.Status != chain.StatusReleased || got.PayerFault || got.Why != whyTrouble || !errors.As(got.Err, &empty) {
		t.Errorf("settlement = %+v, want released by a GasError", got)
	}
	if err := e.Ready(t.Context()); !errors.As(err, &empty) {
		t.Errorf("Ready = %v, want a GasError", err)
	}
	dear := g.engine(t, g.node, func(o *Options) { o.FeeCeiling = big.NewInt(1) })
	var fee *FeeError
	if got := g.settle(t, dear, g.authorize(t, 1, nil)); got.Status != chain.StatusReleased || !errors.As(got.Err, &fee) {
		t.Errorf("settlement = %+v, want released by a FeeError", got)
	}
	if err := dear.Ready(t.Context()); !errors.As(err, &fee) {
		t.Errorf("Ready = %v, want a FeeError", err)
	}
	if all, _ := g.transactions(t); all != 0 {
		t.Errorf("%d transactions, want none", all)
	}
}

func TestEngine_Settle_WithoutADatabaseIsUnknown(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	s := g.authorize(t, 1, nil)
	g.db.Close()
	// Whether an earlier life has shown it cannot be read, so it is not released.
	if got := g.settle(t, e, s); got.Status != chain.StatusUnknown || got.PayerFault || got.Err == nil {
		t.Errorf("settlement = %+v, want unknown", got)
	}
}
