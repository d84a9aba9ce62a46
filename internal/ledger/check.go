package ledger

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/money"
	"market/internal/postgres"
)

// Findings are what is wrong with the books: nothing of it can happen by what the program does.
type Findings struct {
	Unbalanced []int64   // transactions that do not sum to zero, or have no postings
	Balances   []Balance // that are not what their postings sum to, the difference of each, of each provider by itself
	Calls      []Difference
}

// Sound says whether nothing is wrong.
func (f Findings) Sound() bool { return len(f.Unbalanced)+len(f.Balances)+len(f.Calls) == 0 }

// A Difference is an account in which the books of a call are not at its position.
type Difference struct {
	Call     call.ID
	Account  Account
	Owner    uuid.UUID
	Transfer Transfer
	Position money.Signed // what the call's rows say
	Posted   money.Signed // what the books hold
}

// Each of these is one statement and sees one instant, in which rows and books have been moved together or not at all: so books of a market that is
// running are never different because it runs.
const (
	unbalancedSQL = `
SELECT t.id FROM ledger_transactions t LEFT JOIN ledger_postings p ON p.transaction_id = t.id
 GROUP BY t.id HAVING coalesce(sum(p.amount), 1) <> 0 ORDER BY t.id LIMIT $1`

	unfoldedSQL = `
SELECT network, asset, treasury, account, (sum(standing) - sum(full_sum))::text
  FROM (
	SELECT network, asset, treasury, account, owner, amount AS standing, 0 AS full_sum FROM ledger_standing
	UNION ALL
	SELECT t.network, t.asset, t.treasury, p.account, p.owner, 0, p.amount
	  FROM ledger_postings p JOIN ledger_transactions t ON t.id = p.transaction_id
  ) AS both_sides
 GROUP BY network, asset, treasury, account, owner HAVING sum(standing) <> sum(full_sum)
 ORDER BY network, asset, treasury, account LIMIT $1`

	// A sum of both sides is a full join that a null owner, and a missing transfer, compare equal in.
	driftedSQL = `
SELECT call_id, account, coalesce(owner, '00000000-0000-0000-0000-000000000000'::uuid), transaction, coalesce(log_index, 0), coalesce(block_number, 0),
       sum(position)::text, sum(posted)::text
  FROM (
	SELECT call_id, account, owner, transaction, log_index, block_number, amount AS position, 0 AS posted FROM ledger_positions
	UNION ALL
	SELECT t.call_id, p.account, p.owner, p.transaction, p.log_index, p.block_number, 0, p.amount
	  FROM ledger_transactions t JOIN ledger_postings p ON p.transaction_id = t.id
	 WHERE t.call_id IS NOT NULL
  ) AS both_sides
 GROUP BY call_id, account, owner, transaction, log_index, block_number HAVING sum(position) <> sum(posted)
 ORDER BY call_id, account LIMIT $1`
)

// Check compares the books with themselves and with the rows that they were posted from, all of them, and returns at most limit findings of each kind. It reads
// everything: it is for tests, and for whoever has restored a backup, not for every minute.
func (Store) Check(ctx context.Context, db postgres.DB, limit int) (f Findings, err error) {
	rows, err := db.Query(ctx, unbalancedSQL, limit)
	if err != nil {
		return Findings{}, fmt.Errorf("check transactions: %w", err)
	}
	if f.Unbalanced, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return Findings{}, fmt.Errorf("check transactions: %w", err)
	}
	if f.Balances, err = balances(ctx, db, unfoldedSQL, limit); err != nil {
		return Findings{}, err
	}
	if rows, err = db.Query(ctx, driftedSQL, limit); err != nil {
		return Findings{}, fmt.Errorf("check calls: %w", err)
	}
	f.Calls, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Difference, err error) {
		var (
			transaction []byte
			index       int32
			block       int64
		)
		err = row.Scan(&d.Call, &d.Account, &d.Owner, &transaction, &index, &block, &d.Position, &d.Posted)
		d.Transfer = transferOf(transaction, index, block)
		return d, err
	})
	if err != nil {
		return Findings{}, fmt.Errorf("check calls: %w", err)
	}
	return f, nil
}
