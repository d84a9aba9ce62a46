package refund

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"market/internal/chain"
	"market/internal/postgres/pgtest"
)

func TestWorker_WaitsUntilThePaymentIsFinal(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	w := f.worker(t, s)
	for depth, when := range []string{"the payment is not there", "one block short of final"} {
		f.payment = depth
		mustRun(t, w, o)
		wantRefund(t, s, o, when, StateOwed, blockWait, 0)
		if len(f.sent) != 0 || len(s.signed(t, o)) != 0 {
			t.Errorf("%s: %d sent, %d signed; want nothing to leave", when, len(f.sent), len(s.signed(t, o)))
		}
	}
	f.payment = network.Confirmations
	mustRun(t, w, o)
	wantRefund(t, s, o, "final", StateSent, blockWait, 0)
	if len(f.sent) != 1 {
		t.Errorf("%d sent, want 1", len(f.sent))
	}
}

func TestWorker_WritesWhatItSignedBeforeItSendsIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	f.settle = func(_ context.Context, sent chain.Signed) chain.Settlement {
		r, _ := s.find(t, o)
		signed := s.signed(t, o)
		if r.State != StateSent || len(signed) != 1 || signed[0].bytes != sent.Signature || signed[0].validBefore != sent.ValidBefore {
			t.Errorf("while it is sent the refund is %s with %d signatures; want sent, with the one that leaves", r.State, len(signed))
		}
		return unclear(t.Context(), sent)
	}
	mustRun(t, f.worker(t, s), o)

	if len(f.sent) != 1 {
		t.Fatalf("%d sent, want 1", len(f.sent))
	}
	got, p := f.sent[0], o.Payment
	if got.Asset != p.Asset || got.From != p.Treasury || got.To != p.Payer || got.Value.Cmp(p.Amount) != 0 || got.Nonce != o.Nonce ||
		got.ValidAfter != 0 || got.ValidBefore != f.head.Time+validFor {
		t.Errorf("sent %+v, want the whole payment back to %s within %d s", got, p.Payer, validFor)
	}
	signer, err := chain.Recover(chain.NewDomain(network.Assets[0], network.ChainID).Digest(got.Authorization), got.Signature)
	if err != nil || signer != p.Treasury {
		t.Errorf("signed by %s, %v; want the treasury %s", signer, err, p.Treasury)
	}
}

// B116: a refund that is tried again is the same refund.
func TestWorker_SendsTheSameSignatureForAsLongAsItLives(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	f.settle = unclear
	w := f.worker(t, s)
	mustRun(t, w, o)
	first := f.sent[0]

	f.head.Time = first.ValidBefore - validMargin
	mustRun(t, w, o)
	if len(f.sent) != 2 || !sameSigned(f.sent[1], first) {
		t.Fatalf("with just enough life left %d were sent, want the first again", len(f.sent))
	}

	f.head.Time++ // too short to be sent, and nothing is proved
	f.lapsed = first.ValidBefore - 1
	mustRun(t, w, o)
	wantRefund(t, s, o, "neither alive nor lapsed", StateSent, blockWait, 0)
	f.head.Time = first.ValidBefore + 1_000_000 // a clock proves nothing
	mustRun(t, w, o)
	if len(f.sent) != 2 || len(s.signed(t, o)) != 1 {
		t.Fatalf("before its lapse is proved %d were sent and %d signed, want no other", len(f.sent), len(s.signed(t, o)))
	}

	f.lapsed = first.ValidBefore
	mustRun(t, w, o)
	if len(f.sent) != 3 || len(s.signed(t, o)) != 2 {
		t.Fatalf("after its lapse is proved %d were sent and %d signed, want another", len(f.sent), len(s.signed(t, o)))
	}
	if second := f.sent[2]; second.Nonce != first.Nonce || second.ValidBefore != f.head.Time+validFor || second.Signature == first.Signature {
		t.Errorf("sent %+v after %+v; want the same nonce, valid for longer", second, first)
	}
	mustRun(t, w, o)
	if len(f.sent) != 4 || !sameSigned(f.sent[3], f.sent[2]) {
		t.Error("the second signature is not the one that is sent again")
	}
}

func TestWorker_ConfirmsAtTheFinalDepthOnly(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	w := f.worker(t, s)
	mustRun(t, w, o)
	wantRefund(t, s, o, "after the send", StateSent, blockWait, 0)

	f.refund = network.Confirmations - 1
	mustRun(t, w, o)
	wantRefund(t, s, o, "one block short", StateSent, blockWait, 0)
	f.refund = network.Confirmations
	mustRun(t, w, o)
	got, _ := s.find(t, o)
	if got.State != StateConfirmed || got.Transaction != refundProof.Transaction || !got.ConfirmedAt.Equal(s.opened) {
		t.Errorf("refund = %+v, want it confirmed by %s", got, refundProof.Transaction)
	}
	if len(f.sent) != 1 {
		t.Errorf("%d sent, want 1: a used nonce needs no other send", len(f.sent))
	}
	reads := f.reads
	mustRun(t, w, o)
	if f.reads != reads {
		t.Error("a confirmed refund is looked up on the chain again")
	}
}

func TestWorker_ANonceThatSomethingElseUsedIsParked(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	other := chain.Signed{Asset: o.Payment.Asset, Authorization: o.authorization(1)}
	other.To[0]++ // the treasury's key signed a transfer to somebody else with this nonce
	f.used, f.paid = true, &other
	w := f.worker(t, s)
	mustRun(t, w, o)
	wantRefund(t, s, o, "nonce used", StateParked, parkedWait, 0)
	if len(f.sent) != 0 {
		t.Errorf("%d sent, want none", len(f.sent))
	}
}

func TestWorker_WhatTheTokenRefusesIsParkedAndTriedAgain(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	w := f.worker(t, s)
	for _, status := range []chain.Status{chain.StatusReleased, chain.StatusRejected} {
		f.settle = func(context.Context, chain.Signed) chain.Settlement {
			return chain.Settlement{Status: status, Why: "insufficient_funds", PayerFault: true}
		}
		mustRun(t, w, o)
		wantRefund(t, s, o, "treasury short", StateParked, parkedWait, 0)
	}
	pgtest.Shift(t, s.db, parkedWait)
	if due := s.takeDue(t, 1); len(due) != 1 {
		t.Fatal("a parked refund is not handed out again")
	}
	f.settle = nil // there is money again
	mustRun(t, w, o)
	wantRefund(t, s, o, "treasury filled", StateSent, blockWait, 0)
	if len(f.sent) != 3 || !sameSigned(f.sent[2], f.sent[0]) {
		t.Error("the refund that went through is not the one that was signed first")
	}
}

func TestWorker_ARefundOfAnotherKeyOrNetworkIsParked(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f := newFakeChain()
	w := f.worker(t, s)

	stranger := s.payment(t)
	stranger.Treasury[0]++
	elsewhere := s.payment(t)
	elsewhere.Network = "eip155:8453"
	for name, p := range map[string]Payment{"another treasury": stranger, "another network": elsewhere} {
		o := Derive(p)
		if err := (Store{}).Owe(t.Context(), s.db, o); err != nil {
			t.Fatal(err)
		}
		mustRun(t, w, o)
		wantRefund(t, s, o, name, StateParked, parkedWait, 0)
	}
	if f.reads != 0 || len(f.sent) != 0 {
		t.Errorf("%d reads, %d sent; want none", f.reads, len(f.sent))
	}
}

func TestWorker_TroubleOfTheRailBacksOffAndKeepsTheState(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	w := f.worker(t, s)
	f.broken = true
	for attempts, wait := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if err := run(t, w, o); !errors.Is(err, errNode) {
			t.Fatalf("work says %v, want %v", err, errNode)
		}
		wantRefund(t, s, o, "node broken", StateOwed, wait*time.Second, attempts+1)
	}
	f.broken = false
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusReleased, Why: "unexpected_settle_error", Err: errNode}
	}
	if err := run(t, w, o); !errors.Is(err, errNode) {
		t.Errorf("work says %v, want %v", err, errNode)
	}
	if got, _ := s.find(t, o); got.Attempts != 9 || got.State == StateConfirmed || got.State == StateParked {
		t.Errorf("refund = %+v, want one more attempt, and it goes on", got)
	}
	// Nobody says that it is on its way: whoever is asked may count how often.
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusUnknown, Why: "unexpected_settle_error", Err: errNode}
	}
	if err := run(t, w, o); !errors.Is(err, errNode) {
		t.Errorf("work says %v, want %v", err, errNode)
	}
	wantRefund(t, s, o, "nobody sent it", StateSent, retryMax, 10)
	f.settle = nil
	mustRun(t, w, o)
	wantRefund(t, s, o, "node mended", StateSent, blockWait, 10)
}

func TestWorker_PutsTheRowOffEvenWhenItsJobIsCancelled(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f := s.owe(t), newFakeChain()
	ctx, cancel := context.WithCancel(t.Context())
	f.settle = func(ctx context.Context, _ chain.Signed) chain.Settlement {
		cancel()
		<-ctx.Done()
		return chain.Settlement{Status: chain.StatusReleased, Err: ctx.Err()}
	}
	err := f.worker(t, s).Work(ctx, &river.Job[Args]{Args: Args{Call: o.Payment.Call}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("work says %v, want %v", err, context.Canceled)
	}
	if got, wait := s.find(t, o); got.Attempts != 1 || wait != retryMin {
		t.Errorf("%d attempts, next in %s; want 1, in %s", got.Attempts, wait, retryMin)
	}
}

func TestWorker_AJobWithoutARefundDoesNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f := newFakeChain()
	mustRun(t, f.worker(t, s), Derive(s.payment(t)))
	if f.reads != 0 || len(f.sent) != 0 {
		t.Errorf("%d reads, %d sent; want none", f.reads, len(f.sent))
	}
}
