package refund

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/chain"
)

// park owes a refund that the token refuses.
func (s shelf) park(t *testing.T, f *fakeChain) Owed {
	t.Helper()
	o := s.owe(t)
	f.settle = refuses
	mustRun(t, f.worker(t, s), o)
	wantRefund(t, s, o, "refused by the token", StateParked, parkedWait, 0)
	f.settle = nil
	return o
}

func refuses(context.Context, chain.Signed) chain.Settlement {
	return chain.Settlement{Status: chain.StatusReleased, Why: "insufficient_funds", PayerFault: true}
}

func (s shelf) retry(t *testing.T, o Owed) bool {
	t.Helper()
	done, err := Store{}.Retry(t.Context(), s.db, o.Payment.Call)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestStore_Retry_AParkedRefundIsDueAtOnceAndSendsWhatWasSigned(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f := newFakeChain()
	o := s.park(t, f)
	if !s.retry(t, o) {
		t.Fatal("a parked refund is not retried")
	}
	wantRefund(t, s, o, "retried", StateOwed, 0, 0)
	if due := s.takeDue(t, 10); !slices.Equal(due, []call.ID{o.Payment.Call}) {
		t.Errorf("%v are due, want the refund", due)
	}
	mustRun(t, f.worker(t, s), o)
	if len(f.sent) != 2 || !sameSigned(f.sent[0], f.sent[1]) || len(s.signed(t, o)) != 1 {
		t.Errorf("%d sent, %d signed; want the first signature once more, because it lives", len(f.sent), len(s.signed(t, o)))
	}
}

// No hand makes another signature possible before its time: that is for the chain to prove.
func TestStore_Retry_NothingElseIsSignedBeforeTheFirstHasLapsed(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f := newFakeChain()
	o := s.park(t, f)
	s.retry(t, o)
	f.head.Time += validFor // too late to be sent, and nothing is proved
	mustRun(t, f.worker(t, s), o)
	if len(f.sent) != 1 || len(s.signed(t, o)) != 1 {
		t.Errorf("%d sent, %d signed; want no other", len(f.sent), len(s.signed(t, o)))
	}
}

func TestStore_Retry_WhatTheChainShowsAsPaidIsConfirmedByItsProofAndSentNoMore(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f := newFakeChain()
	o := s.park(t, f)
	paid := f.sent[0]
	f.used, f.paid, f.refund = true, &paid, network.Confirmations // whoever saw the signature has used it
	s.retry(t, o)
	mustRun(t, f.worker(t, s), o)
	if got, _ := s.find(t, o); got.State != StateConfirmed || got.Transaction != refundProof.Transaction || len(f.sent) != 1 {
		t.Errorf("refund = %+v after %d sends, want it confirmed by %s", got, len(f.sent), refundProof.Transaction)
	}
}

func TestStore_Retry_IsForParkedRefundsAlone(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, state := range States() {
		o := s.owe(t)
		const setSQL = `UPDATE refunds SET state = $2, transaction = CASE WHEN $2 = 'confirmed' THEN nonce END, log_index = CASE WHEN $2 = 'confirmed' THEN 1 END,
			block_number = CASE WHEN $2 = 'confirmed' THEN 1 END, confirmed_at = CASE WHEN $2 = 'confirmed' THEN market_now() END WHERE call_id = $1`
		if _, err := s.db.Exec(t.Context(), setSQL, o.Payment.Call, state); err != nil {
			t.Fatal(err)
		}
		done := s.retry(t, o)
		got, _ := s.find(t, o)
		want := state
		if state == StateParked {
			want = StateOwed
		}
		if done != (state == StateParked) || got.State != want {
			t.Errorf("%s: retried %v, and is %s", state, done, got.State)
		}
	}
	if done, err := (Store{}).Retry(t.Context(), s.db, call.NewID()); done || err != nil {
		t.Errorf("of no call: %v, %v", done, err)
	}
}

func TestStore_Retry_OfManyAtOnceOneIsFirst(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o := s.park(t, newFakeChain())
	const admins = 10
	var wg sync.WaitGroup
	first := make([]bool, admins)
	for i := range admins {
		wg.Go(func() {
			var err error
			if first[i], err = (Store{}).Retry(t.Context(), s.db, o.Payment.Call); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, is := range first {
		if is {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d of %d were first, want 1", n, admins)
	}
}

func TestStore_Retry_AWorkerThatWasAtItMeanwhileDoesNotParkItAgain(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f := newFakeChain()
	o := s.park(t, f)
	f.settle = func(ctx context.Context, sent chain.Signed) chain.Settlement {
		s.retry(t, o) // while the worker asks
		return refuses(ctx, sent)
	}
	w := f.worker(t, s)
	mustRun(t, w, o)
	wantRefund(t, s, o, "retried meanwhile", StateOwed, 0, 0)
	f.settle = refuses
	mustRun(t, w, o)
	wantRefund(t, s, o, "found the same again", StateParked, parkedWait, 0)
}

// B115: two at once that owe a refund of one payment owe one.
func TestStore_Owe_TwoAtOnceOweOneRefund(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o := Derive(s.payment(t))
	first, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback(context.Background()) }() // does nothing after the commit
	if err := (Store{}).Owe(t.Context(), first, o); err != nil {
		t.Fatal(err)
	}
	second := make(chan error)
	go func() {
		second <- pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error { return Store{}.Owe(t.Context(), tx, o) })
	}()
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM refunds`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d refunds, %v; want 1", rows, err)
	}
}

func TestStore_List_IsOfOneStateAndGoesOnWhereThePageEnded(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f := newFakeChain()
	var parked []call.ID
	for range 3 {
		s.owe(t)
		parked = append(parked, s.park(t, f).Payment.Call)
	}
	slices.Reverse(parked)
	var got []call.ID
	var before uuid.UUID
	for range 2 {
		page, err := Store{}.List(t.Context(), s.db, StateParked, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			got = append(got, r.Payment.Call)
		}
		before = got[len(got)-1]
	}
	if !slices.Equal(got, parked) {
		t.Errorf("listed %v, want %v", got, parked)
	}
	if all, err := (Store{}).List(t.Context(), s.db, "", uuid.UUID{}, 100); err != nil || len(all) != 6 {
		t.Errorf("%d of all, %v; want 6", len(all), err)
	}
}
