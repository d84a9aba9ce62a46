package ledger_test

import (
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/ledger"
	"market/internal/money"
	"market/internal/postgres/pgtest"
)

// lockNotAvailable is what the database says where a fold did not get its moment.
const lockNotAvailable = "55P03"

// fold folds, as often as it takes.
func (s shelf) fold(t testing.TB) {
	t.Helper()
	for {
		err := books.Fold(t.Context(), s.db)
		if err == nil {
			return
		}
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != lockNotAvailable {
			t.Error(err)
			return
		}
	}
}

const tailSQL = `SELECT count(*) FROM ledger_transactions WHERE id > (SELECT upto FROM ledger_folded)`

func TestStore_Fold_ChangesNoBalance(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fold(t) // of nothing
	s.served(t)
	s.refunded(t)
	before := s.trial(t)
	s.fold(t)
	if after := s.trial(t); !maps.Equal(before, after) || s.count(t, tailSQL) != 0 {
		t.Errorf("after a fold %v, and %d are not in it; want %v, none", after, s.count(t, tailSQL), before)
	}
	s.fold(t) // with nothing new
	s.served(t)
	mine, err := books.Owner(t.Context(), s.db, s.owner)
	if err != nil || len(mine) != 1 || mine[0].Amount.String() != "-19502" {
		t.Errorf("the shares of one call that is folded and one that is not: %+v, %v", mine, err)
	}
	s.sound(t)
}

// However many replicas come to it, one folds in a pause, and the next one comes after it.
func TestStore_FoldDue_HasOneTurnAPause(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	pgtest.Freeze(t, s.db)
	s.served(t)
	before := s.trial(t)
	due := func() {
		t.Helper()
		if err := books.FoldDue(t.Context(), s.db); err != nil {
			t.Fatal(err)
		}
	}
	due()
	if n := s.count(t, tailSQL); n != 0 {
		t.Fatalf("%d are not folded by the first, want none", n)
	}
	if after := s.trial(t); !maps.Equal(before, after) {
		t.Errorf("after it %v, want %v", after, before)
	}
	s.served(t)
	due()
	if s.count(t, tailSQL) == 0 {
		t.Error("a second one in the same pause folded too")
	}
	pgtest.Shift(t, s.db, ledger.FoldEvery)
	due()
	if n := s.count(t, tailSQL); n != 0 {
		t.Errorf("%d are not folded after the pause, want none", n)
	}
	s.sound(t)
}

// A fold that is not given its moment is no error: the next one asks again.
func TestStore_FoldDue_LeavesToTheNextWhatItDidNotGet(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.served(t)
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE ledger_transactions IN ROW EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	if err := books.FoldDue(t.Context(), s.db); err != nil || s.count(t, tailSQL) == 0 {
		t.Errorf("%v; want no error, and nothing folded", err)
	}
}

// A number below the watermark whose transaction commits later would be in no balance.
func TestStore_Fold_WaitsForWhoeverHasANumber(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first, second := s.paid(t), s.paid(t)
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, sql := range []string{`SET CONSTRAINTS ALL IMMEDIATE`, endSQL} { // it is posted, and not committed
		args := []any{first, "served"}
		if sql != endSQL {
			args = nil
		}
		if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	s.exec(t, endSQL, second, "served") // has a higher number
	if err := books.Fold(t.Context(), s.db); err == nil {
		t.Error("a fold passes a transaction that has a number and is not committed")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.fold(t)
	if s.count(t, tailSQL) != 0 {
		t.Error("the fold leaves out what is committed")
	}
	s.sound(t)
}

func TestStore_Fold_BalancesAreWholeWhileEverybodyPosts(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	const posters, each = 4, 15
	var posting, folding sync.WaitGroup
	done := make(chan struct{})
	for range posters {
		posting.Go(func() {
			for range each {
				s.served(t)
			}
		})
	}
	for range 2 {
		folding.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				s.fold(t)
				all, err := books.TrialBalance(t.Context(), s.db)
				if err != nil {
					t.Error(err)
				}
				var sum money.Signed
				for _, b := range all {
					sum = sum.Add(b.Amount)
				}
				if sum.Sign() != 0 {
					t.Errorf("the balances sum to %s in the middle of it", sum)
				}
			}
		})
	}
	posting.Wait()
	close(done)
	folding.Wait()
	s.sound(t)
	if got, want := s.trial(t)[ledger.Treasury], money.FromUnits(posters*each*price).String(); got != want {
		t.Errorf("the treasury has %s, want %s", got, want)
	}
}

func TestStore_Check_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		damage string
		found  func(ledger.Findings) bool
	}{
		"a balance that was changed": {`UPDATE ledger_balances SET amount = amount + 1 WHERE account = 'fees'`, func(f ledger.Findings) bool {
			return len(f.Balances) == 1 && f.Balances[0].Account == ledger.Fees && f.Balances[0].Amount.String() == "1" && len(f.Unbalanced)+len(f.Calls) == 0
		}},
		"a watermark that was moved": {`UPDATE ledger_folded SET upto = 0`, func(f ledger.Findings) bool { return len(f.Balances) > 0 }},
		"a posting that is gone": {`DELETE FROM ledger_postings WHERE account = 'fees'`, func(f ledger.Findings) bool {
			return len(f.Unbalanced) == 1 && len(f.Calls) == 1 && f.Calls[0].Posted.Sign() == 0 && f.Calls[0].Position.String() == fee
		}},
		"a delivery of which the books know nothing": {`INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked,
				method, path, source)
			SELECT gen_random_uuid(), c.id, false, c.service_id, c.endpoint_id, 'served', 'ok', 'service', 'external', false, method, path, source
			  FROM calls c WHERE NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.call_id = c.id)`, func(f ledger.Findings) bool {
			return len(f.Calls) == 3 // pending, provider, fees
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.served(t)
			s.paid(t)
			s.fold(t)
			s.sound(t)
			err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`); err != nil { // no trigger runs
					return err
				}
				_, err := tx.Exec(t.Context(), tt.damage)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if f, err := books.Check(t.Context(), s.db, 10); err != nil || !tt.found(f) || f.Sound() {
				t.Errorf("the check finds %+v, %v", f, err)
			}
		})
	}
}
