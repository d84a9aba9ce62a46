package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// foldMax is how many transactions one step of a fold adds up, so that the first fold of long books is many short statements.
	foldMax = 20_000

	// Whoever posts stands behind this lock while it is waited for, so it is not waited for long: the next fold asks again.
	foldWaitSQL = `SET LOCAL lock_timeout = '200ms'`
	foldLockSQL = `LOCK TABLE ledger_transactions IN SHARE ROW EXCLUSIVE MODE`
	newestSQL   = `SELECT coalesce(max(id), 0) FROM ledger_transactions`

	// Replicas that fold at once take turns by the watermark's row. It is locked in a statement by itself: a lock inside the next one would be newer than
	// its snapshot, and the same postings would be added twice.
	uptoSQL = `SELECT upto FROM ledger_folded FOR UPDATE`

	// Of the processes that come to it in one pause the first has the turn.
	foldTurnSQL = `UPDATE ledger_folded SET due_at = market_now() + $1::interval WHERE due_at <= market_now()`

	foldSQL = `
WITH folded AS (
	INSERT INTO ledger_balances AS b (network, asset, treasury, account, owner, amount)
	SELECT t.network, t.asset, t.treasury, p.account, p.owner, sum(p.amount)
	  FROM ledger_postings p JOIN ledger_transactions t ON t.id = p.transaction_id
	 WHERE p.transaction_id > $1 AND p.transaction_id <= $2
	 GROUP BY t.network, t.asset, t.treasury, p.account, p.owner
	ON CONFLICT (network, asset, treasury, account, coalesce(owner, '00000000-0000-0000-0000-000000000000')) DO UPDATE SET amount = b.amount + excluded.amount
)
UPDATE ledger_folded SET upto = $2`
)

// Fold adds up what was posted since the last fold, so that balances are read without history. It is cheap where little is new, and safe to run by any
// number of replicas at once; without it balances are as right, and slower to read.
//
// The watermark is exact: every posting of a transaction at or below it is committed and in the balances, and none comes later. Numbers are given out when a row is
// inserted, and an insert holds its lock on the table until its transaction ends. So in the moment in which nobody else may insert, whatever has a number is
// committed or gone, the highest one is known, and each later insert takes a higher one. Nor are postings added to a transaction afterwards: the
// database takes them from the transaction that wrote it alone. The moment is a transaction by itself, so nobody waits while the sums are made.
//
// A fold that cannot have its moment in 200 ms, because somebody who posts is slow to commit, returns that error of the database and has done nothing.
func (Store) Fold(ctx context.Context, db *pgxpool.Pool) error {
	var newest int64
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		for _, sql := range []string{foldWaitSQL, foldLockSQL} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return tx.QueryRow(ctx, newestSQL).Scan(&newest)
	})
	if err != nil {
		return fmt.Errorf("find what to fold: %w", err)
	}
	for more := true; more; {
		err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			var upto int64
			if err := tx.QueryRow(ctx, uptoSQL).Scan(&upto); err != nil {
				return err
			}
			to := min(newest, upto+foldMax)
			more = to < newest
			if to <= upto {
				return nil // somebody else was here
			}
			_, err := tx.Exec(ctx, foldSQL, upto, to)
			return err
		})
		if err != nil {
			return fmt.Errorf("fold balances: %w", err)
		}
	}
	return nil
}

// FoldEvery is the pause between two folds: a balance is read with what was posted in it, some ten thousands of postings where hundreds of calls are paid a second.
const FoldEvery = time.Minute

// lockNotAvailable is what PostgreSQL says where a lock was waited for in vain.
const lockNotAvailable = "55P03"

// FoldDue folds where nobody did in the last pause. One that did not get its moment leaves it to the next.
func (s Store) FoldDue(ctx context.Context, db *pgxpool.Pool) error {
	// A little less than the pause, so that the one who comes a moment early is not the one who is too late.
	tag, err := db.Exec(ctx, foldTurnSQL, FoldEvery-5*time.Second)
	if err != nil {
		return fmt.Errorf("take the turn to fold: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	err = s.Fold(ctx, db)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == lockNotAvailable {
		return nil
	}
	return err
}
