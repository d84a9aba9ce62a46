package ledger_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/ledger"
)

func TestCalls_TheBooksFollowEachStep(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.claim(t)
	s.want(t, "claimed", id)
	tx, back := transaction(), transaction()
	s.exec(t, proveSQL, id, tx[:], 100)
	s.want(t, "paid", id, "pending -10001", "treasury 10001 @100")
	s.exec(t, endSQL, id, "failed")
	s.want(t, "failed, and no refund is owed, which cannot be", id, "suspense -10001", "treasury 10001 @100")
	s.exec(t, oweSQL, id)
	s.want(t, "the refund is owed", id, "refunds_payable -10001", "treasury 10001 @100")
	for _, state := range []string{"sent", "parked", "owed"} {
		s.exec(t, `UPDATE refunds SET state = $2 WHERE call_id = $1`, id, state)
		s.want(t, state, id, "refunds_payable -10001", "treasury 10001 @100")
	}
	again := transaction()
	s.exec(t, `UPDATE calls SET transaction = $2, block_number = 101 WHERE id = $1`, id, again[:])
	s.want(t, "mined again, by another transaction", id, "refunds_payable -10001", "treasury 10001 @101")
	s.exec(t, confirmSQL, id, back[:])
	s.want(t, "given back", id, "treasury -10001 @200", "treasury 10001 @101")
	s.sound(t)
	if got := s.trial(t)[ledger.Treasury]; got != "0" {
		t.Errorf("the treasury should have %s of it, want nothing", got)
	}
}

func TestCalls_AServedOneIsShareAndFee(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.served(t)
	s.want(t, "served", id, "fees "+fee, "provider "+share, "treasury 10001 @100")
	s.exec(t, `UPDATE calls SET payment_state = 'sent' WHERE id = $1`, id)
	s.want(t, "the chain dropped it", id, "fees "+fee, "provider "+share, "treasury 10001 @100")
	s.exec(t, loseSQL, id)
	s.want(t, "and lost it", id, "fees "+fee, "losses 10001", "provider "+share)
	s.sound(t)

	mine, err := books.Owner(t.Context(), s.db, s.owner)
	if err != nil || len(mine) != 1 || mine[0].Amount.String() != share || mine[0].Account != ledger.Provider {
		t.Errorf("the provider's balance: %+v, %v", mine, err)
	}
}

func TestCalls_WhatIsLostBeforeAnOutcomeIsNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.paid(t)
	s.exec(t, loseSQL, id)
	s.want(t, "lost", id)
	s.exec(t, endSQL, id, "failed")
	s.want(t, "and ended", id)
	owed := s.refunded(t)
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), loseSQL, owed); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), voidSQL, owed)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, "its refund is void", owed)
	s.sound(t)
}

const believeSQL = `
UPDATE calls SET state = 'asked', asked_at = market_now(), payment_state = 'sent', sent_transaction = decode(repeat('5e', 32), 'hex'),
       word_of = 'hosted', word_at = market_now()
 WHERE id = $1`

func TestCalls_AWordIsInTheBooksWhenItIsProvedOrWasFalse(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	proved, carried, failed := s.claim(t), s.claim(t), s.claim(t)
	for _, id := range []call.ID{proved, carried, failed} {
		s.exec(t, believeSQL, id)
		s.want(t, "believed", id)
	}
	s.exec(t, endSQL, proved, "served")
	s.want(t, "served on a word", proved)
	tx := transaction()
	s.exec(t, proveSQL, proved, tx[:], 100)
	s.want(t, "proved", proved, "fees "+fee, "provider "+share, "treasury 10001 @100")
	s.exec(t, endSQL, carried, "served")
	s.exec(t, loseSQL, carried)
	s.want(t, "served, and never paid", carried, "fees "+fee, "losses 10001", "provider "+share)
	s.exec(t, endSQL, failed, "failed")
	s.exec(t, loseSQL, failed)
	s.want(t, "failed, and never paid", failed)
	s.sound(t)
}

// What cannot be is in the books too, balanced, where somebody looks.
func TestCalls_WhatNobodyCanExplainIsInSuspense(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	both := s.served(t)
	s.exec(t, oweSQL, both)
	s.want(t, "served and owed back", both, "fees "+fee, "provider "+share, "refunds_payable -10001", "suspense 10001", "treasury 10001 @100")
	less := s.refunded(t)
	s.exec(t, `UPDATE refunds SET amount = amount - 1 WHERE call_id = $1`, less)
	s.want(t, "a refund of another amount", less, "refunds_payable -10000", "suspense -1", "treasury 10001 @100")
	void := s.refunded(t)
	s.exec(t, voidSQL, void)
	s.want(t, "a refund that is void, of a payment that stands", void, "suspense -10001", "treasury 10001 @100")
	gone, back := s.refunded(t), transaction()
	s.exec(t, confirmSQL, gone, back[:])
	s.exec(t, loseSQL, gone)
	s.want(t, "given back, and then lost", gone, "losses 10001", "treasury -10001 @200")
	s.sound(t)
}

func TestCalls_TheShareIsWhoseTheServiceWasAtTheClaim(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.paid(t)
	buyer := s.sell(t)
	s.exec(t, endSQL, id, "served")
	s.served(t)
	for name, owner := range map[string]uuid.UUID{"who sold it": s.owner, "who bought it": buyer} {
		if got, err := books.Owner(t.Context(), s.db, owner); err != nil || len(got) != 1 || got[0].Amount.String() != share {
			t.Errorf("%s has %+v, %v, want the share of one call", name, got, err)
		}
	}
	s.exec(t, `UPDATE services SET owner_id = NULL WHERE id = $1`, s.service.ID)
	s.served(t)
	if got := s.trial(t)[ledger.Provider]; got != "-29253" {
		t.Errorf("the shares come to %s, want those of three calls, one of them a seller's without an account", got)
	}
}

const postingsSQL = `SELECT count(*) FROM ledger_postings`

func (s shelf) count(t *testing.T, sql string) (n int) {
	t.Helper()
	if err := s.db.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCalls_WhatMovesNoMoneyPostsNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.refunded(t)
	before := s.count(t, postingsSQL)
	for _, sql := range []string{
		`UPDATE calls SET look_at = market_now(), looks = looks + 1 WHERE id = $1`,
		`UPDATE calls SET payment_state = 'final' WHERE id = $1`,
		`UPDATE refunds SET next_at = market_now(), attempts = 3, state = 'sent' WHERE call_id = $1`,
	} {
		err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), sql, id); err != nil {
				return err
			}
			// Not even the lock of the call was taken, so nothing looked.
			_, err := tx.Exec(t.Context(), `SET CONSTRAINTS ALL IMMEDIATE`)
			if err != nil {
				return err
			}
			var locks int
			if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`).Scan(&locks); err != nil {
				return err
			}
			if locks != 0 {
				t.Errorf("%s looks at the books", sql)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // and a look that finds nothing posts nothing
		if _, err := s.db.Exec(t.Context(), `SELECT ledger_post($1)`, id); err != nil {
			t.Fatal(err)
		}
	}
	if after := s.count(t, postingsSQL); after != before {
		t.Errorf("%d postings, want %d as before", after, before)
	}
}

func TestCalls_WhatWasMissedIsMadeGood(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.served(t)
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
		for _, sql := range []string{
			`ALTER TABLE calls DISABLE TRIGGER USER`, `UPDATE calls SET block_number = 150`, `ALTER TABLE calls ENABLE TRIGGER USER`,
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err := books.Check(t.Context(), s.db, 1)
	if err != nil || len(found.Calls) != 1 || found.Calls[0].Call != id || found.Calls[0].Account != ledger.Treasury || found.Sound() {
		t.Errorf("the check finds %+v, %v; want one difference of the call, as it was asked for", found, err)
	}
	s.exec(t, `UPDATE calls SET log_index = log_index + 1 WHERE id = $1`, id)
	s.want(t, "after the next move", id, "fees "+fee, "provider "+share, "treasury 10001 @150")
	s.sound(t)
}

func TestCalls_ASnapshotOlderThanItsTurnIsRefused(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.paid(t)
	err := pgx.BeginTxFunc(t.Context(), s.db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), endSQL, id, "served")
		return err
	})
	if err == nil {
		t.Error("a snapshot of before the turn is let in")
	}
	s.want(t, "nothing was written", id, "pending -10001", "treasury 10001 @100")
}

func TestCalls_TheRefundAndThePaymentMoveAtOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for range 20 {
		id, other, back, again := s.refunded(t), s.refunded(t), transaction(), transaction()
		var wg sync.WaitGroup
		for _, one := range []struct {
			sql  string
			args []any
		}{
			{confirmSQL, []any{id, back[:]}}, {loseSQL, []any{id}},
			{voidSQL, []any{other}}, {loseSQL, []any{other}}, {`UPDATE calls SET transaction = $2, block_number = 102 WHERE id = $1`, []any{other, again[:]}},
		} {
			wg.Go(func() {
				if _, err := s.db.Exec(t.Context(), one.sql, one.args...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s.want(t, "given back and lost at once", id, "losses 10001", "treasury -10001 @200")
		s.want(t, "void, moved and lost at once", other)
	}
	s.sound(t)
}

const waitingSQL = `
SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
	WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted)`

// A refund that is void and a payment that is lost are nothing together, and each alone is something that nobody can explain: so if the second did not
// see what the first has posted and not committed, the books would hold both.
func TestCalls_TheSecondOfTwoWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.refunded(t)
	begin := func(sqls ...string) pgx.Tx {
		tx, err := s.db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range sqls {
			if _, err := tx.Exec(t.Context(), strings.ReplaceAll(sql, "$1", "'"+id.String()+"'")); err != nil {
				t.Fatal(err)
			}
		}
		return tx
	}
	first, second := begin(voidSQL, `SET CONSTRAINTS ALL IMMEDIATE`), begin(loseSQL)
	ended := make(chan error, 1)
	go func() { ended <- second.Commit(t.Context()) }()
	for waiting := false; !waiting; {
		select {
		case err := <-ended:
			t.Fatalf("the second did not wait: %v", err)
		default:
		}
		if err := s.db.QueryRow(t.Context(), waitingSQL).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.want(t, "both", id)
	s.sound(t)
}
