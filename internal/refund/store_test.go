package refund

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/postgres/pgtest"
)

// B115: two refunds of one payment are one row.
func TestStore_Owe_OneCallOwesOneRefund(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	p := s.payment(t)
	if _, err := (Store{}).Find(t.Context(), s.db, p.Call); !errors.Is(err, ErrNone) {
		t.Errorf("before anything is owed: %v, want %v", err, ErrNone)
	}
	first := Derive(p)
	for range 2 {
		if err := (Store{}).Owe(t.Context(), s.db, first); err != nil {
			t.Fatal(err)
		}
	}
	more := first
	more.Payment.Amount = money.FromUnits(1_000_000)
	if err := (Store{}).Owe(t.Context(), s.db, more); err != nil {
		t.Fatal(err)
	}

	got, wait := s.find(t, first)
	want := Refund{Owed: first, State: StateOwed}
	want.Payment.ChainID = 0 // not kept
	if got.Payment.Amount.Cmp(want.Payment.Amount) != 0 {
		t.Errorf("amount = %s, want that of the first, %s", got.Payment.Amount, want.Payment.Amount)
	}
	got.Payment.Amount = want.Payment.Amount // holds a pointer
	if !got.OwedAt.Equal(s.opened) || !got.NextAt.Equal(s.opened.Add(lease)) {
		t.Errorf("owed at %s and tried again at %s, want at %s, and a lease later", got.OwedAt, got.NextAt, s.opened)
	}
	want.OwedAt, want.NextAt = got.OwedAt, got.NextAt // of another zone
	if got != want {
		t.Errorf("refund = %+v, want %+v", got, want)
	}
	if wait != lease {
		t.Errorf("handed out in %s, want %s: its job runs now", wait, lease)
	}
	var rows int
	if err := s.db.QueryRow(t.Context(), `SELECT count(*) FROM refunds`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d refunds, %v; want 1", rows, err)
	}
}

func (s shelf) takeDue(t *testing.T, limit int) []call.ID {
	t.Helper()
	due, err := Store{}.TakeDue(t.Context(), s.db, limit)
	if err != nil {
		t.Fatal(err)
	}
	return due
}

func TestStore_TakeDue_LeavesARefundAloneForItsLease(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o := s.owe(t)
	for _, when := range []string{"after it was owed", "after it was handed out"} {
		pgtest.Shift(t, s.db, lease-time.Microsecond)
		if due := s.takeDue(t, 10); len(due) != 0 {
			t.Errorf("just before a lease %s: %v are due", when, due)
		}
		pgtest.Shift(t, s.db, time.Microsecond)
		if due := s.takeDue(t, 10); len(due) != 1 || due[0] != o.Payment.Call {
			t.Errorf("exactly a lease %s: %v are due, want %s", when, due, o.Payment.Call)
		}
		if due := s.takeDue(t, 10); len(due) != 0 {
			t.Errorf("at once %s: %v are due again", when, due)
		}
	}
}

func TestStore_TakeDue_HandsEachOutOnceAndNoMoreThanAsked(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const refunds, limit = 40, 3
	owed := map[call.ID]bool{}
	for range refunds {
		owed[s.owe(t).Payment.Call] = true
	}
	pgtest.Shift(t, s.db, lease)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		taken = map[call.ID]int{}
	)
	for range 4 {
		wg.Go(func() {
			for {
				due, err := Store{}.TakeDue(t.Context(), s.db, limit)
				if err != nil {
					t.Error(err)
					return
				}
				if len(due) == 0 {
					return
				}
				if len(due) > limit {
					t.Errorf("%d are handed out at once, want at most %d", len(due), limit)
				}
				mu.Lock()
				for _, id := range due {
					taken[id]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// One that skips what others hold may find nothing while there is something.
	for _, id := range s.takeDue(t, refunds) {
		taken[id]++
	}
	if len(taken) != refunds {
		t.Errorf("%d of %d were handed out", len(taken), refunds)
	}
	for id, times := range taken {
		if times != 1 || !owed[id] {
			t.Errorf("%s, owed %v, was handed out %d times", id, owed[id], times)
		}
	}
}

func TestStore_TakeDue_DoesNotWaitForWhatAnotherIsHandingOut(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for range 5 {
		s.owe(t)
	}
	pgtest.Shift(t, s.db, lease)
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }() // does nothing after the commit
	first, err := Store{}.TakeDue(t.Context(), tx, 2)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	second, err := Store{}.TakeDue(ctx, s.db, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(first) != 2 || len(second) != 3 || slices.ContainsFunc(second, func(id call.ID) bool { return slices.Contains(first, id) }) {
		t.Errorf("%v and %v were handed out, want 2 and the other 3", first, second)
	}
}

func TestStore_AConfirmedRefundMovesNoMore(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o := s.owe(t)
	id := o.Payment.Call
	first := chain.Proof{Transaction: [32]byte{1}, LogIndex: 2, BlockNumber: 3}
	if err := (Store{}).confirm(t.Context(), s.db, id, first); err != nil {
		t.Fatal(err)
	}
	if err := (Store{}).confirm(t.Context(), s.db, id, chain.Proof{Transaction: [32]byte{9}}); err != nil {
		t.Fatal(err)
	}
	if err := (Store{}).later(t.Context(), s.db, Refund{Owed: o}, StateSent, time.Second, 1, "late"); err != nil {
		t.Fatal(err)
	}
	if err := (Store{}).addSignature(t.Context(), s.db, id, signature{1, anySignature(t)}); err != nil {
		t.Fatal(err)
	}
	if err := (Store{}).Owe(t.Context(), s.db, o); err != nil {
		t.Fatal(err)
	}
	got, _ := s.find(t, o)
	if got.State != StateConfirmed || got.Transaction != first.Transaction || got.Attempts != 0 || got.Why != "" || !got.ConfirmedAt.Equal(s.opened) {
		t.Errorf("refund = %+v, want it confirmed by %s", got, first.Transaction)
	}
	pgtest.Shift(t, s.db, 24*time.Hour)
	if due := s.takeDue(t, 10); len(due) != 0 {
		t.Errorf("%v are due", due)
	}
}
