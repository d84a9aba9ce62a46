package payout

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/riverqueue/river"

	"market/internal/chain"
)

var errNode = errors.New("node out of reach")

// A fakeChain is a network on which a test says what is true. It takes a nonce once, as the token does.
type fakeChain struct {
	mu     sync.Mutex
	head   chain.Head
	used   bool
	paid   *chain.Signed // the authorization that moved the money
	depth  int           // of that transfer
	lapsed uint64        // until when authorizations are proved lapsed, in chain time
	broken bool          // nothing can be read

	reads  int
	sent   []chain.Signed
	from   uint64                                                     // where the last search began
	settle func(ctx context.Context, s chain.Signed) chain.Settlement // nil: see Settle
}

func newFakeChain() *fakeChain {
	return &fakeChain{head: chain.Head{Number: 100, Time: 1_700_000_000}, depth: 1}
}

var payoutProof = chain.Proof{Transaction: common.Hash{0xee}, LogIndex: 3, BlockNumber: 99}

func (f *fakeChain) read() error {
	f.reads++
	if f.broken {
		return errNode
	}
	return nil
}

func (f *fakeChain) FreshHead(context.Context) (chain.Head, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head, f.read()
}

func (f *fakeChain) Locate(_ context.Context, want chain.Expect, transaction common.Hash) (chain.Proof, int, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(); err != nil {
		return chain.Proof{}, 0, false, err
	}
	found := transaction == payoutProof.Transaction && f.paid != nil && sameTransfer(f.paid.Expect(), want)
	return payoutProof, f.depth, found, nil
}

func (f *fakeChain) FindSettlement(_ context.Context, want chain.Expect, fromBlock uint64) (chain.Proof, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(); err != nil {
		return chain.Proof{}, false, err
	}
	f.from = fromBlock
	if f.paid == nil || !sameTransfer(f.paid.Expect(), want) || fromBlock > 90 {
		return chain.Proof{}, false, nil
	}
	return payoutProof, true, nil
}

func (f *fakeChain) AuthorizationUsed(context.Context, common.Address, common.Address, common.Hash) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used, f.read()
}

func (f *fakeChain) LapsedAt(_ context.Context, _, _ common.Address, _ common.Hash, validBefore uint64, depth int) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.used && depth == network.Confirmations && validBefore <= f.lapsed, f.read()
}

// Settle takes what comes first, unless the test has another idea.
func (f *fakeChain) Settle(ctx context.Context, s chain.Signed) chain.Settlement {
	f.mu.Lock()
	f.sent = append(f.sent, s)
	settle := f.settle
	f.mu.Unlock()
	if settle != nil {
		return settle(ctx, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.used {
		return chain.Settlement{Status: chain.StatusRejected, Why: "invalid_exact_evm_nonce_already_used", PayerFault: true}
	}
	f.used, f.paid = true, &s
	return chain.Settlement{Status: chain.StatusSettled, Proof: payoutProof}
}

// unclear is a send whose effect nobody knows.
func unclear(context.Context, chain.Signed) chain.Settlement {
	return chain.Settlement{Status: chain.StatusUnknown, Why: "settlement_pending"}
}

// sameTransfer compares by value what holds an amount, which is a pointer.
func sameTransfer(a, b chain.Expect) bool {
	equal := a.Value.Cmp(b.Value) == 0
	a.Value = b.Value
	return equal && a == b
}

func sameSigned(a, b chain.Signed) bool {
	return sameTransfer(a.Expect(), b.Expect()) && a.ValidBefore == b.ValidBefore && a.Signature == b.Signature
}

func (f *fakeChain) worker(t *testing.T, s shelf) *Worker {
	t.Helper()
	return NewWorker(s.db, map[string]Rail{network.ID: {Network: network, Node: f, Sender: f, Treasuries: map[common.Address]chain.Key{treasury(t).Address(): treasury(t)}}}, nil)
}

// run works on one payout once.
func run(t *testing.T, w *Worker, p Payout) error {
	t.Helper()
	return w.Work(t.Context(), &river.Job[Args]{Args: Args{Payout: p.ID}})
}

func mustRun(t *testing.T, w *Worker, p Payout) {
	t.Helper()
	if err := run(t, w, p); err != nil {
		t.Fatal(err)
	}
}

// want checks where a payout stands and how long it waits.
func (s shelf) want(t *testing.T, p Payout, when string, state State, wait time.Duration, attempts int) {
	t.Helper()
	got, gotWait := s.find(t, p.ID)
	if got.State != state || gotWait != wait || got.Attempts != attempts {
		t.Errorf("%s: %s, next in %s, %d attempts (%s); want %s, in %s, %d",
			when, got.State, gotWait, got.Attempts, got.Why, state, wait, attempts)
	}
}

func (s shelf) signed(t *testing.T, p Payout) int64 {
	t.Helper()
	return s.number(t, `SELECT count(*) FROM payout_signatures WHERE payout_id = $1`, p.ID)
}
