package app_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/app"
	"market/internal/chain"
	"market/internal/delivery"
)

// A fault is what a facilitator of a test does with an authorization.
type fault int32

const (
	honest       fault = iota // passes it on and tells the truth
	deaf                      // loses it, and says that it does not know
	hasty                     // passes it on, and says that it does not know yet
	refuses                   // loses it, and says that the payer can not pay
	relents                   // passes it on, and says that the payer can not pay
	boasts                    // loses it, and says that it is paid, by a transaction that nobody has
	borrows                   // loses it, and says that it is paid, by a transaction that paid something else
	borrowsLater              // passes it on, and says that it is paid, by a transaction that paid something else
	pretends                  // loses it, and says that nothing of it was sent
	keepsSaying               // passes it on, and says that nothing of it was sent
)

// A faulty facilitator stands between the paid path and the engine. Its fault can be changed while the test goes on.
type faulty struct {
	how  atomic.Int32
	seen atomic.Int64
	// choose overrides how for one authorization; nil: it never does.
	choose func(s chain.Signed) fault

	mu       sync.Mutex
	engine   delivery.Settler // of one of the replicas
	borrowed chain.Proof      // of the last payment that it settled honestly
	late     sync.WaitGroup
}

// newFaulty returns it with the option that puts it in. What it does behind its callers' backs ends before the test does.
func newFaulty(t *testing.T, how fault) (*faulty, app.Option) {
	f := &faulty{}
	f.how.Store(int32(how))
	t.Cleanup(f.late.Wait)
	return f, app.WithSettler(func(_ string, engine delivery.Settler) delivery.Settler {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.engine = engine
		return &faultyEngine{faulty: f, engine: engine}
	})
}

func (f *faulty) set(how fault) { f.how.Store(int32(how)) }

// A faultyEngine is the facilitator as one replica has it.
type faultyEngine struct {
	*faulty
	engine delivery.Settler
}

var errFaulty = errors.New("a facilitator of the tests")

func (f *faultyEngine) Settle(ctx context.Context, s chain.Signed) chain.Settlement {
	f.seen.Add(1)
	behind := func() {
		f.late.Go(func() { f.engine.Settle(context.WithoutCancel(ctx), s) })
	}
	unknown := chain.Settlement{Status: chain.StatusUnknown, Why: "settlement_pending", Err: errFaulty}
	no := chain.Settlement{Status: chain.StatusRejected, PayerFault: true, Why: "insufficient_funds", Err: errFaulty}
	released := chain.Settlement{Status: chain.StatusReleased, Why: "unexpected_settle_error", Err: errFaulty}
	how := fault(f.how.Load())
	if f.choose != nil {
		how = f.choose(s)
	}
	switch how {
	case deaf:
		return unknown
	case hasty:
		behind()
		return unknown
	case refuses:
		return no
	case relents:
		behind()
		return no
	case boasts:
		invented := crypto.Keccak256Hash(s.Nonce[:])
		return chain.Settlement{Status: chain.StatusSettled, Transaction: invented,
			Proof: chain.Proof{Transaction: invented, LogIndex: 1, BlockNumber: 1, BlockHash: common.Hash{1}}}
	case borrows, borrowsLater:
		if how == borrowsLater {
			behind()
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return chain.Settlement{Status: chain.StatusSettled, Transaction: f.borrowed.Transaction, Proof: f.borrowed}
	case pretends:
		return released
	case keepsSaying:
		behind()
		return released
	}
	told := f.engine.Settle(ctx, s)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.borrowed = told.Proof
	return told
}

// settle puts an authorization on the chain, honestly, as somebody who kept it would.
func (f *faulty) settle(t *testing.T, s chain.Signed) {
	t.Helper()
	f.mu.Lock()
	engine := f.engine
	f.mu.Unlock()
	if got := engine.Settle(t.Context(), s); got.Status != chain.StatusSettled {
		t.Fatalf("settle: %+v", got)
	}
}
