package payout

import (
	"context"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/ledger"
	"market/internal/postgres/pgtest"
)

// A step is a place at which a worker can die.
type step string

const (
	beforeRead    step = "before it has read the chain"
	beforeIntent  step = "before it knows what to sign"
	beforeSign    step = "before the signature is written"
	beforeSend    step = "after the signature is written, before it is sent"
	afterSend     step = "after it was sent"
	beforeFind    step = "before the transfer is found"
	beforeConfirm step = "before the transfer is confirmed"
)

var errDied = errors.New("the process died")

// A mortalChain kills the worker that comes to a step. What the database had not committed is gone then, as it is with a process.
type mortalChain struct {
	*fakeChain
	dies step // empty: nobody dies any more
	paid int  // how often money has moved
}

func (m *mortalChain) reach(s step) {
	if m.dies == s {
		m.dies = ""
		panic(errDied)
	}
}

func (m *mortalChain) AuthorizationUsed(ctx context.Context, asset, authorizer common.Address, nonce common.Hash) (bool, error) {
	m.reach(beforeRead)
	return m.fakeChain.AuthorizationUsed(ctx, asset, authorizer, nonce)
}

func (m *mortalChain) FreshHead(ctx context.Context) (chain.Head, error) {
	m.reach(beforeIntent)
	return m.fakeChain.FreshHead(ctx)
}

func (m *mortalChain) FindSettlement(ctx context.Context, want chain.Expect, from uint64) (chain.Proof, bool, error) {
	m.reach(beforeFind)
	return m.fakeChain.FindSettlement(ctx, want, from)
}

func (m *mortalChain) Locate(ctx context.Context, want chain.Expect, transaction common.Hash) (chain.Proof, int, bool, error) {
	m.reach(beforeConfirm)
	return m.fakeChain.Locate(ctx, want, transaction)
}

func (m *mortalChain) Reserve(ctx context.Context) (context.Context, func(), error) {
	m.reach(beforeSign)
	return ctx, func() {}, nil
}

func (m *mortalChain) Settle(ctx context.Context, s chain.Signed) chain.Settlement {
	m.reach(beforeSend)
	settled := m.fakeChain.Settle(ctx, s)
	if settled.Status == chain.StatusSettled {
		m.paid++
	}
	m.reach(afterSend)
	return settled
}

// B118: a worker is killed at each step in turn. The next one is handed what it left once its lease has run out, pays it once, and the books have it.
func TestWorker_KilledAtAnyStepThePayoutIsPaidOnceAndInTheBooks(t *testing.T) {
	t.Parallel()
	for _, dies := range []step{beforeRead, beforeIntent, beforeSign, beforeSend, afterSend, beforeFind, beforeConfirm} {
		t.Run(string(dies), func(t *testing.T) {
			t.Parallel()
			s, p := owed(t, 2)
			m := &mortalChain{fakeChain: newFakeChain(), dies: dies}
			m.depth = network.Confirmations
			replica := func() *Worker {
				return NewWorker(s.db, map[string]Rail{network.ID: {Network: network, Node: m, Sender: m, Units: m, Treasuries: map[common.Address]chain.Key{treasury(t).Address(): treasury(t)}}}, nil)
			}
			// lives says whether a worker came back from its turn.
			lives := func() (came bool) {
				defer func() {
					if got := recover(); got != nil && got != errDied { //nolint:errorlint // the value itself
						panic(got)
					}
				}()
				if err := run(t, replica(), p); err != nil {
					t.Error(err)
				}
				return true
			}
			turns, deaths := 0, 0
			for ; turns < 6; turns++ {
				due, err := Store{}.TakeDue(t.Context(), s.db, dueMax)
				if err != nil {
					t.Fatal(err)
				}
				if len(due) == 0 {
					break // it has ended
				}
				if !lives() {
					deaths++
				}
				pgtest.Shift(t, s.db, lease)
			}
			got, _ := s.find(t, p.ID)
			if deaths != 1 || got.State != StateConfirmed || m.paid != 1 || s.signed(t, p) != 1 {
				t.Errorf("%d died in %d turns, it is %s (%s), paid %d times and signed %d times; want one dead, and it confirmed, paid and signed once", deaths, turns, got.State, got.Why,
					m.paid, s.signed(t, p))
			}
			if !lives() || m.paid != 1 { // also what one does that died right after it had confirmed
				t.Errorf("one that comes late pays again: %d times", m.paid)
			}
			books, err := ledger.Store{}.TrialBalance(t.Context(), s.db)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range books {
				if b.Account == ledger.Provider && b.Amount.Sign() != 0 {
					t.Errorf("providers are owed %s, want nothing", b.Amount.Neg())
				}
			}
			if f, err := (ledger.Store{}).Check(t.Context(), s.db, 10); err != nil || !f.Sound() {
				t.Errorf("the books are %+v, %v; want them sound", f, err)
			}
		})
	}
}
