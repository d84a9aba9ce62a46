package delivery

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/money"
	"market/internal/postgres/pgtest"
	"market/internal/refund"
)

// thePayer pays for every call of a shelf.
var thePayer = common.Address{0xca}

func (s shelf) paidBy(t *testing.T, payer common.Address, states []call.State, before call.ID, limit int) []Record {
	t.Helper()
	all, err := PaidBy(t.Context(), s.db, payer, states, before, limit)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func idsOf(records []Record) (ids []call.ID) {
	for _, r := range records {
		ids = append(ids, r.Call)
	}
	return ids
}

func TestPaidBy_TheNewestFirstAPageAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	var want []call.ID
	for range 3 {
		want = append(want, s.claim(t).ID, s.claim(t).ID) // two at one instant
		pgtest.Shift(t, s.db, time.Second)
	}
	slices.Reverse(want)
	var got []call.ID
	var before call.ID
	for range 4 {
		page := idsOf(s.paidBy(t, thePayer, call.States(), before, 2))
		if got = append(got, page...); len(page) > 0 {
			before = page[len(page)-1]
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

// A wallet never sees what is another's, whatever it asks for.
func TestPaidBy_AWalletSeesItsOwnAlone(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	ours := s.fail(t).Call
	pgtest.Shift(t, s.db, time.Hour)
	theirs := s.fail(t).Call
	stranger := common.Address{0xbb}
	for _, table := range []string{"calls", "refunds"} {
		key := map[string]string{"calls": "id", "refunds": "call_id"}[table]
		if _, err := s.db.Exec(t.Context(), `UPDATE `+table+` SET payer = $2 WHERE `+key+` = $1`, theirs, stranger[:]); err != nil {
			t.Fatal(err)
		}
	}
	for payer, want := range map[common.Address]call.ID{thePayer: ours, stranger: theirs} {
		refunded, err := RefundedTo(t.Context(), s.db, payer, "", call.ID{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		for what, got := range map[string][]Record{"calls": s.paidBy(t, payer, call.States(), call.ID{}, 10), "refunds": refunded} {
			if !slices.Equal(idsOf(got), []call.ID{want}) {
				t.Errorf("%s of %s: %v, want %s", what, payer, idsOf(got), want)
			}
		}
	}
	// The place of another's call in time is nobody's business either.
	if got := s.paidBy(t, thePayer, call.States(), theirs, 10); len(got) != 0 {
		t.Errorf("after another's call there are %v", idsOf(got))
	}
	if got, err := RefundedTo(t.Context(), s.db, thePayer, "", theirs, 10); err != nil || len(got) != 0 {
		t.Errorf("after another's refund there are %v, %v", idsOf(got), err)
	}
	if got := s.paidBy(t, common.Address{0xdd}, call.States(), call.ID{}, 10); len(got) != 0 {
		t.Errorf("a wallet that never paid has %v", idsOf(got))
	}
}

func TestRefundedTo_IsOfOneState(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.claim(t)
	owed := s.fail(t).Call
	pgtest.Shift(t, s.db, rest)
	parked := parkedRefund(t, s)
	for state, want := range map[refund.State][]call.ID{refund.StateOwed: {owed}, refund.StateParked: {parked}, refund.StateConfirmed: nil, "": {parked, owed}} {
		got, err := RefundedTo(t.Context(), s.db, thePayer, state, call.ID{}, 10)
		if err != nil || !slices.Equal(idsOf(got), want) {
			t.Errorf("%q: %v, %v; want %v", state, idsOf(got), err, want)
		}
	}
}

const paymentIsSQL = `UPDATE calls SET payment_state = $2 WHERE id = $1 AND transaction IS NOT NULL`

// payment sets the state of a payment that was proved.
func (s shelf) payment(t *testing.T, id call.ID, state string) {
	t.Helper()
	if tag, err := s.db.Exec(t.Context(), paymentIsSQL, id, state); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d rows, %v", tag.RowsAffected(), err)
	}
}

// What a caller has paid is what the chain took. What a reorganisation took back was not paid, served or not; while the same payment is sent again, nobody
// knows.
func TestSpendingOf_WhatTheChainTookBackIsNotSpent(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	d := s.asked(t).served()
	s.record(t, d)
	for _, step := range []struct {
		payment        string
		charged        Charged
		spent, pending bool
		proved         bool // there is no receipt where nothing proves the payment
	}{
		{paymentMined, ChargedYes, true, false, true},
		{paymentSent, ChargedPending, false, true, false},
		{paymentMined, ChargedYes, true, false, true},
		{paymentLost, ChargedNo, false, false, false},
	} {
		s.payment(t, d.Call, step.payment)
		r := s.lookup(t, d.Call)
		all, _, err := SpendingOf(t.Context(), s.db, thePayer)
		if err != nil || len(all) != 1 || all[0].Calls != 1 {
			t.Fatalf("%s: %+v, %v", step.payment, all, err)
		}
		if got := all[0]; r.Charged() != step.charged || got.Spent.IsZero() == step.spent || got.Pending.IsZero() == step.pending || !got.Owed.IsZero() || !got.Refunded.IsZero() {
			t.Errorf("%s: charged is %v, and in sum it is %+v", step.payment, r.Charged(), got)
		}
		if (r.Dropped || r.TakenBack) == step.proved {
			t.Errorf("%s: %+v", step.payment, r)
		}
	}
}

// What a wallet is told in sum is what it is told call by call.
func TestSpendingOf_EachCallIsCountedAsItIsTold(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.record(t, s.asked(t).served())
	s.record(t, s.mustOnWord(t, "hosted").served())
	falseWord := s.mustOnWord(t, "hosted")
	s.record(t, falseWord.served())
	s.lapse(t, falseWord.Call)
	for _, state := range []string{paymentSent, paymentLost} { // after it was proved
		off := s.asked(t).served()
		s.record(t, off)
		s.payment(t, off.Call, state)
	}
	s.claim(t) // settling
	s.asked(t)
	pgtest.Shift(t, s.db, rest)
	confirmed := s.fail(t).Call
	pgtest.Shift(t, s.db, rest)
	void := s.fail(t).Call
	pgtest.Shift(t, s.db, rest)
	parkedRefund(t, s) // the third strike: nothing is asked after it
	const (
		confirmedSQL = `UPDATE refunds SET state = 'confirmed', transaction = nonce, log_index = 1, block_number = 1, confirmed_at = market_now() WHERE call_id = $1`
		voidSQL      = `UPDATE refunds SET state = 'void' WHERE call_id = $1`
		stateSQL     = `UPDATE calls SET state = $2 WHERE id = $1`
	)
	for sql, id := range map[string]call.ID{confirmedSQL: confirmed, voidSQL: void} {
		if _, err := s.db.Exec(t.Context(), sql, id); err != nil {
			t.Fatal(err)
		}
	}
	for _, state := range []call.State{call.Unknown, call.Rejected, call.Expired, call.StateReleased} {
		if _, err := s.db.Exec(t.Context(), stateSQL, s.claim(t).ID, state); err != nil {
			t.Fatal(err)
		}
	}

	all, newest, err := SpendingOf(t.Context(), s.db, thePayer)
	if err != nil || newest || len(all) != 1 {
		t.Fatalf("%+v, %v, %v; want one asset", all, newest, err)
	}
	var want Spending
	records := s.paidBy(t, thePayer, call.States(), call.ID{}, 100)
	for _, r := range records {
		switch {
		case r.Refund != nil && r.Refund.State == refund.StateConfirmed:
			want.Refunded = want.Refunded.Add(r.Amount)
		case r.Refund != nil && r.Refund.State != refund.StateVoid:
			want.Owed = want.Owed.Add(r.Amount)
		case r.Charged() == ChargedYes:
			want.Spent = want.Spent.Add(r.Amount)
		case r.Charged() == ChargedPending:
			want.Pending = want.Pending.Add(r.Amount)
		}
	}
	got := all[0]
	for name, of := range map[string][2]money.Amount{"spent": {got.Spent, want.Spent}, "refunded": {got.Refunded, want.Refunded}, "owed": {got.Owed, want.Owed},
		"pending": {got.Pending, want.Pending}} {
		if of[0].Cmp(of[1]) != 0 || of[0].IsZero() {
			t.Errorf("%s: %s in sum, call by call %s; want the same, and some", name, of[0], of[1])
		}
	}
	if got.Calls != len(records) {
		t.Errorf("%d calls in sum, %d listed", got.Calls, len(records))
	}
}

// What a wallet asks for is read by its index, however many calls of others there are, and from where the page begins.
func TestPaidBy_IsReadByItsIndex(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first := s.fail(t).Call
	for sql, index := range map[string]string{paidBySQL: "calls_by_payer", refundedToSQL: "refunds_by_payer"} {
		err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
			for _, set := range []string{`SET LOCAL enable_seqscan = off`, `SET LOCAL plan_cache_mode = force_generic_plan`} {
				if _, err := tx.Exec(t.Context(), set); err != nil {
					return err
				}
			}
			plan := explained(t.Context(), t, tx, sql, thePayer[:], map[string]any{paidBySQL: call.States(), refundedToSQL: ""}[sql], first, 2)
			if !strings.Contains(plan, index) {
				t.Errorf("not read by %s:\n%s", index, plan)
			}
			for line := range strings.SplitSeq(plan, "\n") {
				if strings.Contains(line, "Index Cond") && strings.Contains(line, "payer") && strings.Contains(line, "_at <= $") {
					return nil
				}
			}
			t.Errorf("where the page begins is no condition of the index:\n%s", plan)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func explained(ctx context.Context, t *testing.T, tx pgx.Tx, sql string, args ...any) string {
	t.Helper()
	rows, err := tx.Query(ctx, "EXPLAIN (COSTS off) "+sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
