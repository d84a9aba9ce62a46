package payout

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/money"
	"market/internal/postgres"
)

// A Line is one call of a statement. Share is what the payout pays for it: the price without the fee.
type Line struct {
	Call    call.ID
	At      time.Time // it was recorded
	Service string    // its slug
	Price   money.Signed
	Fee     money.Signed
	Share   money.Signed // a correction of an earlier payout may be below zero
}

const linesSQL = `
SELECT call_id, at, service, price::text, fee::text, share::text FROM payout_lines WHERE payout_id = $1 ORDER BY at, call_id LIMIT $2`

// LinesMax is how many lines a payout has at most.
const LinesMax = itemsMax

// Lines returns what a payout pays for, call by call, at most limit of them. All shares come to its amount.
func (Store) Lines(ctx context.Context, db postgres.DB, id uuid.UUID, limit int) ([]Line, error) {
	rows, err := db.Query(ctx, linesSQL, id, limit)
	if err != nil {
		return nil, fmt.Errorf("read statement of payout %s: %w", id, err)
	}
	lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Line, err error) {
		err = row.Scan(&l.Call, &l.At, &l.Service, &l.Price, &l.Fee, &l.Share)
		l.At = l.At.UTC()
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("read statement of payout %s: %w", id, err)
	}
	return lines, nil
}

// numberedMax bounds the payouts of one number: there is one of each asset of each network.
const numberedMax = 100

const numberedSQL = columnsSQL + ` WHERE account_id = $1 AND number = $2 AND network = coalesce(nullif($3, ''), network) ORDER BY network, asset LIMIT $4`

// Numbered returns the payouts of an account that have a number, on one network or (empty) on all: numbers count by network and asset.
func (Store) Numbered(ctx context.Context, db postgres.DB, account uuid.UUID, number int64, network string) ([]Payout, error) {
	return list(ctx, db, numberedSQL, account, number, network, numberedMax)
}

// A Filter says which payouts are listed; what is zero is every one.
type Filter struct {
	Account uuid.UUID
	State   State
	Before  uuid.UUID // those that were made before this one
}

// Ids are of version 7, so they are in the order of making.
const listSQL = columnsSQL + `
 WHERE ($1 = '00000000-0000-0000-0000-000000000000'::uuid OR account_id = $1) AND ($2 = '' OR state = $2)
   AND ($3 = '00000000-0000-0000-0000-000000000000'::uuid OR id < $3)
 ORDER BY id DESC LIMIT $4`

// List returns payouts, the newest first, at most limit of them.
func (Store) List(ctx context.Context, db postgres.DB, f Filter, limit int) ([]Payout, error) {
	return list(ctx, db, listSQL, f.Account, f.State, f.Before, limit)
}

func list(ctx context.Context, db postgres.DB, sql string, args ...any) ([]Payout, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("list payouts: %w", err)
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("list payouts: %w", err)
	}
	return all, nil
}

// Earnings are what an account has earned of one asset on one network. The sum of all is what all of its calls came to.
type Earnings struct {
	Network   string
	Asset     common.Address
	Pending   money.Signed // of calls whose payment is not final
	Lost      money.Signed // of calls whose payment the chain took back after they were served: they are not paid out
	Available money.Signed // final, and in no payout
	Underway  money.Signed // in a payout that is on its way
	Held      money.Signed // in one that is held, or whose account may not be paid at the moment
	Paid      money.Signed // arrived, and final
}

// One statement sees one instant, in which a posting is in a payout or is not.
const earningsSQL = `
SELECT network, asset, coalesce(sum(pending), 0)::text, coalesce(sum(lost), 0)::text, coalesce(sum(available), 0)::text, coalesce(sum(underway), 0)::text,
       coalesce(sum(held), 0)::text, coalesce(sum(paid), 0)::text
  FROM (
	SELECT network, asset, sum(amount) FILTER (WHERE NOT final AND NOT lost) AS pending, sum(amount) FILTER (WHERE lost) AS lost, sum(amount) FILTER (WHERE final) AS available,
	       0 AS underway, 0 AS held, 0 AS paid
	  FROM payout_postings WHERE account_id = $1 GROUP BY network, asset
	UNION ALL
	SELECT network, asset, 0, 0, 0,
	       sum(amount) FILTER (WHERE state <> 'confirmed' AND NOT held AND stopped = ''),
	       sum(amount) FILTER (WHERE state <> 'confirmed' AND (held OR stopped <> '')),
	       sum(amount) FILTER (WHERE state = 'confirmed')
	  FROM payouts, payout_stopped($1) AS stopped
	 WHERE account_id = $1 AND state <> 'cancelled' GROUP BY network, asset
  ) AS parts (network, asset, pending, lost, available, underway, held, paid)
 GROUP BY network, asset ORDER BY network, asset LIMIT 100`

// Earnings returns what an account has earned, and where it is.
func (Store) Earnings(ctx context.Context, db postgres.DB, account uuid.UUID) ([]Earnings, error) {
	rows, err := db.Query(ctx, earningsSQL, account)
	if err != nil {
		return nil, fmt.Errorf("add up what account %s has earned: %w", account, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Earnings, err error) {
		var asset []byte
		err = row.Scan(&e.Network, &asset, &e.Pending, &e.Lost, &e.Available, &e.Underway, &e.Held, &e.Paid)
		e.Asset = common.BytesToAddress(asset)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("add up what account %s has earned: %w", account, err)
	}
	return all, nil
}

// A Sum is what a statement comes to.
type Sum struct {
	Calls             int
	Price, Fee, Share money.Signed
}

const sumSQL = `
SELECT count(*)::int, coalesce(sum(price), 0)::text, coalesce(sum(fee), 0)::text, coalesce(sum(share), 0)::text FROM payout_lines WHERE payout_id = $1`

// Sum adds up the lines of a payout. Price without fee is the share, which is the payout's amount.
func (Store) Sum(ctx context.Context, db postgres.DB, id uuid.UUID) (s Sum, err error) {
	if err := db.QueryRow(ctx, sumSQL, id).Scan(&s.Calls, &s.Price, &s.Fee, &s.Share); err != nil {
		return Sum{}, fmt.Errorf("add up payout %s: %w", id, err)
	}
	return s, nil
}
