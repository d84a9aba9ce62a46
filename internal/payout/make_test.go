package payout

import (
	"errors"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/ledger"
	"market/internal/money"
)

func TestStore_Make_TakesWhatIsFinalOnceAndNumbersWithoutGaps(t *testing.T) {
	t.Parallel()
	s := newShelf(t).paidTo(t, payee)
	unfinal := s.served(t)
	if _, err := s.try(t.Context(), 1); !errors.Is(err, ErrTooLittle) {
		t.Fatalf("with nothing final: %v, want %v", err, ErrTooLittle)
	}
	s.earn(t, 3)
	for least, want := range map[uint64]error{3*share + 1: ErrTooLittle, 10 * share: ErrTooLittle} {
		if _, err := s.try(t.Context(), least); !errors.Is(err, want) {
			t.Errorf("at least %d: %v, want %v", least, err, want)
		}
	}
	first, err := s.try(t.Context(), 3*share)
	if err != nil {
		t.Fatal(err)
	}
	if first.Number != 1 || first.Amount.Cmp(money.FromUnits(3*share)) != 0 || first.Address != payee || first.State != StateOwed || first.FromBlock != 90 ||
		first.Nonce != Nonce(network.ChainID, s.purse.Asset, s.purse.Account, 1) {
		t.Errorf("first payout = %+v", first)
	}
	if _, err := s.try(t.Context(), 1); !errors.Is(err, ErrOpen) {
		t.Errorf("while it is open: %v, want %v", err, ErrOpen)
	}
	s.confirm(t, first)
	if _, err := s.try(t.Context(), 1); !errors.Is(err, ErrTooLittle) {
		t.Errorf("when all is paid: %v, want %v", err, ErrTooLittle)
	}
	s.exec(t, finalSQL, unfinal)
	if second := s.make(t); second.Number != 2 || second.Amount.Cmp(money.FromUnits(share)) != 0 || second.Nonce == first.Nonce {
		t.Errorf("second payout = %+v", second)
	}
}

// confirm has a payout proved as the worker does.
func (s shelf) confirm(t *testing.T, p Payout) {
	t.Helper()
	s.exec(t, `UPDATE payouts SET signed_at = market_now() WHERE id = $1`, p.ID)
	proof := payoutProof
	proof.Transaction = common.Hash(p.Nonce) // another of each
	if _, err := (Store{}).confirm(t.Context(), s.db, p.ID, proof); err != nil {
		t.Fatal(err)
	}
}

// Two replicas and an admin who press at once pay each posting once.
func TestStore_Make_WhoeverPressesAtOnceOneMakesIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t).paidTo(t, payee)
	s.earn(t, 20)
	const pressing = 8
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		made  []Payout
		start = make(chan struct{})
	)
	for range pressing {
		wg.Go(func() {
			<-start
			p, err := s.try(t.Context(), 1)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made = append(made, p)
			case !errors.Is(err, ErrOpen):
				t.Errorf("who came second hears %v, want %v", err, ErrOpen)
			}
		})
	}
	close(start)
	wg.Wait()
	if len(made) != 1 || made[0].Amount.Cmp(money.FromUnits(20*share)) != 0 {
		t.Fatalf("made are %+v, want one of all", made)
	}
	if n := s.number(t, `SELECT count(*) FROM payout_items`); n != 20 {
		t.Errorf("%d items, want 20", n)
	}
}

func TestStore_Make_NobodyIsPaidToNoAddressOrOneOfOurs(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.earn(t, 1)
	if _, err := s.try(t.Context(), 1); !errors.Is(err, ErrNoAddress) {
		t.Errorf("without an address: %v, want %v", err, ErrNoAddress)
	}
	s.paidTo(t, payee)
	if _, err := (Store{}).Make(t.Context(), s.db, s.purse, network.ChainID, money.FromUnits(1), []common.Address{payee}, "a test"); !errors.Is(err, ErrNoAddress) {
		t.Errorf("to a wallet of ours: %v, want %v", err, ErrNoAddress)
	}
}

func TestPayouts_TheDatabaseRefusesWhatIsNotTheSumOfItsOwnFinalPostings(t *testing.T) {
	t.Parallel()
	s := newShelf(t).paidTo(t, payee)
	s.earn(t, 2)
	s.served(t)
	other := s.another(t, "other", s.purse.Asset)
	other.earn(t, 1)
	const forgeSQL = `
WITH made AS (
	INSERT INTO payouts (id, account_id, network, asset, treasury, number, amount, address, nonce, from_block, made_by)
	VALUES (gen_random_uuid(), $1, $2, $3, $4, 1, $5, $6, $7, 0, 'a forger') RETURNING id)
INSERT INTO payout_items (payout_id, transaction_id, line) SELECT made.id, p.transaction_id, p.line FROM made, payout_postings p WHERE (p.account_id = $1) AND (p.final OR $8)
   OR $9 AND p.final`
	for name, tt := range map[string]struct {
		amount           int64
		unfinal, anybody bool
	}{
		"a unit more than its items":  {2*share + 1, false, false},
		"a unit less":                 {2*share - 1, false, false},
		"a posting that is not final": {3 * share, true, false},
		"a posting of somebody else":  {3 * share, false, true},
	} {
		_, err := s.db.Exec(t.Context(), forgeSQL, s.purse.Account, s.purse.Network, s.purse.Asset[:], s.purse.Treasury[:], tt.amount, payee[:],
			make([]byte, 32), tt.unfinal, tt.anybody)
		wantConstraint(t, name, err, "payouts_sum_of_items")
	}
	p := s.make(t)
	_, err := s.db.Exec(t.Context(), `INSERT INTO payout_items (payout_id, transaction_id, line) SELECT $1, transaction_id, line FROM payout_postings LIMIT 1`, p.ID)
	wantConstraint(t, "an item that is added", err, "payout_items_of_now")
	_, err = s.db.Exec(t.Context(), `UPDATE payout_items SET released = true`)
	wantConstraint(t, "an item that is taken out", err, "payout_items_kept")
	_, err = s.db.Exec(t.Context(), `UPDATE payouts SET amount = amount + 1`)
	wantConstraint(t, "another amount", err, "payouts_kept")
	_, err = s.db.Exec(t.Context(), `DELETE FROM payouts`)
	wantConstraint(t, "a payout that is deleted", err, "payouts_kept")
}

func wantConstraint(t *testing.T, name string, err error, want string) {
	t.Helper()
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refused.ConstraintName != want {
		t.Errorf("%s: %v, want %s", name, err, want)
	}
}

func TestStore_Confirm_IsInTheBooksByTheSameTransaction(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 2)
	want := func(when string, balance int64) {
		t.Helper()
		const heldSQL = `SELECT coalesce(sum(amount), 0) FROM ledger_standing WHERE account = 'provider' AND owner = $1`
		if got := s.number(t, heldSQL, s.purse.Account); got != balance {
			t.Errorf("%s the provider's balance is %d, want %d", when, got, balance)
		}
	}
	want("before", -2*share)
	s.confirm(t, p)
	want("after", 0)
	if again, err := (Store{}).confirm(t.Context(), s.db, p.ID, payoutProof); err != nil || again { // by whoever comes late
		t.Fatal(err)
	}
	want("after it was confirmed twice", 0)
	if n := s.number(t, `SELECT amount FROM ledger_postings WHERE account = 'treasury' AND amount < 0 AND log_index = 3`); n != -2*share {
		t.Errorf("the treasury gave %d, want %d with the reference of the transfer", n, -2*share)
	}
	if f, err := (ledger.Store{}).Check(t.Context(), s.db, 10); err != nil || !f.Sound() {
		t.Errorf("the books are %+v, %v; want them sound", f, err)
	}
}

func TestStore_Cancel_GivesThePostingsBackBeforeTheFirstSignatureAlone(t *testing.T) {
	t.Parallel()
	s, p := owed(t, 2)
	cancel := func(p Payout) error {
		return pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error { return Store{}.Cancel(t.Context(), tx, p.ID) })
	}
	if err := cancel(p); err != nil {
		t.Fatal(err)
	}
	if err := cancel(p); !errors.Is(err, ErrEnded) {
		t.Errorf("the second time: %v, want %v", err, ErrEnded)
	}
	next := s.make(t)
	if next.Number != 2 || next.Amount.Cmp(p.Amount) != 0 || next.Nonce == p.Nonce {
		t.Errorf("the next is %+v, want all of it under the next number", next)
	}
	s.exec(t, `UPDATE payouts SET signed_at = market_now() WHERE id = $1`, next.ID)
	if err := cancel(next); !errors.Is(err, ErrSigned) {
		t.Errorf("when it is signed: %v, want %v", err, ErrSigned)
	}
	_, err := s.db.Exec(t.Context(), `UPDATE payouts SET state = 'cancelled' WHERE id = $1`, next.ID)
	wantConstraint(t, "cancelled by hand", err, "payouts_cancelled_never_left")
}

func TestStore_Lines_AThousandCallsAddUpToTheLastUnit(t *testing.T) {
	t.Parallel()
	s := newShelf(t).paidTo(t, payee)
	const calls = 1_000
	s.earn(t, calls)
	p := s.make(t)
	lines, err := Store{}.Lines(t.Context(), s.db, p.ID, LinesMax)
	if err != nil {
		t.Fatal(err)
	}
	var sum money.Signed
	for _, l := range lines {
		if l.Price.Cmp(l.Fee.Add(l.Share)) != 0 || l.Service != "weather" || l.At.IsZero() {
			t.Fatalf("line = %+v, want price = fee + share", l)
		}
		sum = sum.Add(l.Share)
	}
	if len(lines) != calls || sum.Cmp(p.Amount.Debit()) != 0 {
		t.Errorf("%d lines come to %s; want %d and %s", len(lines), sum, calls, p.Amount)
	}
	whole, err := Store{}.Sum(t.Context(), s.db, p.ID)
	if err != nil || whole.Calls != calls || whole.Share.Cmp(sum) != 0 || whole.Price.Cmp(whole.Fee.Add(whole.Share)) != 0 {
		t.Errorf("the statement comes to %+v, %v; want %d calls and %s", whole, err, calls, sum)
	}
	e, err := Store{}.Earnings(t.Context(), s.db, s.purse.Account)
	if err != nil || len(e) != 1 || e[0].Underway.Cmp(p.Amount.Debit()) != 0 || e[0].Available.Sign() != 0 || e[0].Pending.Sign() != 0 || e[0].Paid.Sign() != 0 {
		t.Errorf("earnings = %+v, %v; want all of it under way", e, err)
	}
	s.confirm(t, p)
	s.served(t)
	e, err = Store{}.Earnings(t.Context(), s.db, s.purse.Account)
	if err != nil || len(e) != 1 || e[0].Paid.Cmp(p.Amount.Debit()) != 0 || e[0].Pending.Cmp(money.FromUnits(share).Debit()) != 0 || e[0].Underway.Sign() != 0 {
		t.Errorf("earnings = %+v, %v; want them paid, and one call pending", e, err)
	}
}

// A payment that the chain took back and brought again is paid once.
func TestStore_Make_WhatWasTakenBackInBetweenIsPaidOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t).paidTo(t, payee)
	id := s.served(t)
	s.exec(t, `UPDATE calls SET amount = amount, provider_id = NULL WHERE id = $1`, id) // the books take the share back
	s.exec(t, `UPDATE calls SET provider_id = $2 WHERE id = $1`, id, s.purse.Account)
	s.exec(t, finalSQL, id)
	if n := s.number(t, `SELECT count(*) FROM payout_postings`); n != 3 {
		t.Fatalf("%d postings, want 3", n)
	}
	if p := s.make(t); p.Amount.Cmp(money.FromUnits(share)) != 0 {
		t.Errorf("payout of %s, want %d", p.Amount, share)
	}
}
