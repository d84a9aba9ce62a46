package ledger

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
)

const (
	// balancesMax bounds a list of balances. There are eight accounts of a treasury, and treasuries and assets are configured.
	balancesMax = 10_000
	// postingsMax bounds those of one call, which has some five, and a few more for each reorganisation.
	postingsMax = 1_000
)

// Store reads the books, and keeps what the operator books. Every method takes the caller's db.
type Store struct{}

// What is folded and what is not yet are read by one statement, so by one snapshot: see Fold.
const trialBalanceSQL = `
SELECT network, asset, treasury, account, sum(amount)::text FROM ledger_standing
 GROUP BY network, asset, treasury, account ORDER BY network, asset, treasury, account LIMIT $1`

// TrialBalance returns what every account holds, the shares of all providers in one. Those of one asset in one treasury sum to zero. An account that nothing
// was ever posted to is not among them.
func (Store) TrialBalance(ctx context.Context, db postgres.DB) ([]Balance, error) {
	return balances(ctx, db, trialBalanceSQL, balancesMax)
}

const ownerSQL = `
SELECT network, asset, treasury, account, amount::text FROM ledger_standing
 WHERE account = 'provider' AND owner = $1 ORDER BY network, asset, treasury LIMIT $2`

// Owner returns what the shares of one provider come to, for each asset and treasury. What it has to get is below zero.
func (Store) Owner(ctx context.Context, db postgres.DB, owner uuid.UUID) ([]Balance, error) {
	return balances(ctx, db, ownerSQL, owner, balancesMax)
}

func balances(ctx context.Context, db postgres.DB, sql string, args ...any) ([]Balance, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("read balances: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Balance, err error) {
		var asset, treasury []byte
		err = row.Scan(&b.Network, &asset, &treasury, &b.Account, &b.Amount)
		b.Asset, b.Treasury = common.BytesToAddress(asset), common.BytesToAddress(treasury)
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("read balances: %w", err)
	}
	return all, nil
}

const ofCallSQL = `
SELECT p.transaction_id, p.account, coalesce(p.owner, '00000000-0000-0000-0000-000000000000'::uuid), p.amount::text,
       p.transaction, coalesce(p.log_index, 0), coalesce(p.block_number, 0)
  FROM ledger_transactions t JOIN ledger_postings p ON p.transaction_id = t.id
 WHERE t.call_id = $1 ORDER BY p.transaction_id, p.line LIMIT $2`

// OfCall returns what was posted for a call, in the order of writing.
func (Store) OfCall(ctx context.Context, db postgres.DB, id call.ID) ([]Posting, error) {
	rows, err := db.Query(ctx, ofCallSQL, id, postingsMax)
	if err != nil {
		return nil, fmt.Errorf("read postings of call %s: %w", id, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p Posting, err error) {
		var (
			transaction []byte
			index       int32
			block       int64
		)
		err = row.Scan(&p.Transaction, &p.Account, &p.Owner, &p.Amount, &transaction, &index, &block)
		p.Transfer = transferOf(transaction, index, block)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("read postings of call %s: %w", id, err)
	}
	return all, nil
}

// transferOf is a transfer as its columns say it; the zero one where there is none.
func transferOf(transaction []byte, index int32, block int64) Transfer {
	return Transfer{Transaction: common.BytesToHash(transaction), LogIndex: uint(index), Block: uint64(block)} //nolint:gosec // written from values that fit
}
