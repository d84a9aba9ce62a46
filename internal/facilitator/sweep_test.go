package facilitator

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/postgres/pgtest"
)

// run runs an engine's loop until the test ends.
func run(t *testing.T, e *Engine) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// B77: a gap before later transactions is closed by what was stored.
func TestEngine_Run_SendsWhatWasStoredAndNeverSent(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	// The first replica's sends all vanish. Its transactions are stored, and then it dies.
	hole := edge(t, g.URL(), func(method string, _ []json.RawMessage) string {
		if method == "eth_sendRawTransaction" {
			return brokenMember
		}
		return ""
	})
	dying := g.engine(t, g.dial(t, hole), nil)
	const payments = 3
	var lost [payments]chain.Signed
	var hashes [payments]common.Hash
	for i := range lost {
		lost[i] = g.authorize(t, 100, nil)
		hashes[i] = g.interrupted(t, dying, lost[i], g.stored(t, i+1)).Transaction
	}
	e := g.engine(t, g.node, func(o *Options) { o.ResendAfter = time.Hour })
	run(t, e)
	eventually(t, "all are mined and closed", func() bool { _, open := g.transactions(t); return open == 0 })
	for i, s := range lost {
		got := g.settle(t, e, s)
		g.wantSettled(t, s, got)
		if got.Transaction != hashes[i] {
			t.Errorf("settled by %s, want %s", got.Transaction, hashes[i])
		}
	}
	if all, _ := g.transactions(t); all != payments {
		t.Errorf("%d transactions, want %d", all, payments)
	}
}

func TestEngine_Run_SendsAgainAfterAWhile(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	var dropping atomic.Bool
	dropping.Store(true)
	flaky := edge(t, g.URL(), func(method string, _ []json.RawMessage) string {
		if method == "eth_sendRawTransaction" && dropping.Load() {
			return brokenMember
		}
		return ""
	})
	var reported atomic.Int64
	e := g.engine(t, g.dial(t, flaky), func(o *Options) {
		o.ResendAfter = time.Minute
		o.Report = func(error) { reported.Add(1) }
	})
	g.interrupted(t, e, g.authorize(t, 100, nil), g.stored(t, 1))
	if err := e.sweep(t.Context(), time.Minute); err != nil {
		t.Fatalf("a young transaction is in the hands of Settle: %v", err)
	}
	pgtest.Shift(t, g.db, time.Minute)
	if err := e.sweep(t.Context(), time.Minute); err == nil {
		t.Fatal("no error of a send that failed")
	}
	run(t, e)
	eventually(t, "the failure is reported", func() bool { return reported.Load() > 0 })
	dropping.Store(false)
	eventually(t, "it is mined and closed", func() bool { _, open := g.transactions(t); return open == 0 })
}

func TestEngine_Run_ClosesATransactionWhoseNonceAnotherTook(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	hole := edge(t, g.URL(), func(method string, _ []json.RawMessage) string {
		if method == "eth_sendRawTransaction" {
			return brokenMember
		}
		return ""
	})
	s := g.authorize(t, 100, nil)
	lost := g.interrupted(t, g.engine(t, g.dial(t, hole), nil), s, g.stored(t, 1))
	// The gas key is used by hand, with the same nonce.
	g.send(t, g.gas, g.stranger.Address(), nil, 1)
	e := g.engine(t, g.node, nil)
	run(t, e)
	eventually(t, "the lost transaction is closed", func() bool { _, open := g.transactions(t); return open == 0 })
	got := g.settle(t, e, s)
	g.wantSettled(t, s, got)
	if got.Transaction == lost.Transaction {
		t.Error("settled by a transaction that can never be mined")
	}
}

func TestEngine_Run_KeepsATransactionOpenUntilItIsFinal(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.network.Confirmations = 1000
	e := g.engine(t, g.dial(t, g.URL()), nil)
	s := g.authorize(t, 100, nil)
	g.wantSettled(t, s, g.settle(t, e, s))
	if err := e.sweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if all, open := g.transactions(t); all != 1 || open != 1 {
		t.Errorf("%d transactions, %d open, want 1 and 1", all, open)
	}
}

func TestEngine_Ready_SeesWhatWouldHoldASettlementUp(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.engine(t, g.node, nil)
	if err := e.Ready(t.Context()); err != nil {
		t.Fatalf("a fresh engine: %v", err)
	}
	s := g.authorize(t, 100, nil)
	g.wantSettled(t, s, g.settle(t, e, s))
	pgtest.Shift(t, g.db, time.Hour)
	if err := e.Ready(t.Context()); err != nil {
		t.Fatalf("an old transaction that is mined: %v", err)
	}
	g.Pause()
	g.interrupted(t, e, g.authorize(t, 100, nil), g.pooled(t, g.gas.Address(), 1))
	if err := e.Ready(t.Context()); err != nil {
		t.Fatalf("a young transaction that is not mined: %v", err)
	}
	pgtest.Shift(t, g.db, 3*time.Minute)
	var backlog *BacklogError
	if err := e.Ready(t.Context()); !errors.As(err, &backlog) || backlog.Missing != 0 {
		t.Errorf("an old transaction that is not mined: %v, want a BacklogError", err)
	}
	g.Resume()
	eventually(t, "ready again", func() bool { return e.Ready(t.Context()) == nil })
	if _, err := g.db.Exec(t.Context(), `UPDATE gas_accounts SET next_nonce = next_nonce + 2`); err != nil {
		t.Fatal(err)
	}
	if err := e.Ready(t.Context()); !errors.As(err, &backlog) || backlog.Missing != 2 {
		t.Errorf("two nonces without a transaction: %v, want a BacklogError of 2", err)
	}
}

func TestEngine_Settle_WhatIsStoredIsNotReleasedEvenIfItWouldFail(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	hole := edge(t, g.URL(), func(method string, _ []json.RawMessage) string {
		if method == "eth_sendRawTransaction" {
			return brokenMember
		}
		return ""
	})
	s := g.authorize(t, 100, nil)
	lost := g.interrupted(t, g.engine(t, g.dial(t, hole), nil), s, g.stored(t, 1))
	if err := g.SetPaused(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	got := g.settle(t, g.engine(t, g.node, nil), s)
	if got.Status != chain.StatusRejected || got.Why != whyFailed || got.PayerFault || got.Transaction != lost.Transaction {
		t.Errorf("settlement = %+v, want rejected by %s", got, lost.Transaction)
	}
}
