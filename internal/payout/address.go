package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// addressWait is how long a change of an address waits, in market time, while the old one holds.
const addressWait = 24 * time.Hour

// ErrNotPaid is that an address is one that nobody is paid to.
var ErrNotPaid = errors.New("an address that nobody is paid to")

// An Address is where an account is paid on a network.
type Address struct {
	Network string
	Now     common.Address // zero: none holds yet
	Next    common.Address // zero: no change waits
	NextAt  time.Time      // when it holds
}

// Of two that are set at once the second waits for the first: what holds is read by the statement after this one.
const addressLockSQL = `SELECT pg_advisory_xact_lock(hashtextextended(format('payout address of %s on %s', $1::text, $2::text), 0))`

// The first address has nothing to protect, and going back to the one that holds takes nothing from anybody: both hold at once.
const setAddressSQL = `
INSERT INTO payout_addresses (account_id, network, address, effective_at)
SELECT $1, $2, $3, market_now() + CASE WHEN coalesce(payout_address($1, $2), $3) = $3 THEN '0'::interval ELSE $4::interval END`

// SetAddress has an account paid to another address on a network, in a day; the first one holds at once. ErrNotPaid: it is the token's, or one of ours.
func (s Store) SetAddress(ctx context.Context, tx pgx.Tx, account uuid.UUID, network string, address common.Address, not []common.Address) (Address, error) {
	if Ours(address, common.Address{}, not) {
		return Address{}, ErrNotPaid
	}
	if _, err := tx.Exec(ctx, addressLockSQL, account, network); err != nil {
		return Address{}, fmt.Errorf("set payout address of account %s: %w", account, err)
	}
	if _, err := tx.Exec(ctx, setAddressSQL, account, network, address[:], addressWait); err != nil {
		return Address{}, fmt.Errorf("set payout address of account %s: %w", account, err)
	}
	all, err := s.Addresses(ctx, tx, account)
	if err != nil {
		return Address{}, err
	}
	for _, a := range all {
		if a.Network == network {
			return a, nil
		}
	}
	return Address{}, fmt.Errorf("set payout address of account %s: it is not there", account)
}

// A network has what holds, and the newest row where that has not come to hold.
const addressesSQL = `
SELECT DISTINCT ON (network) network, payout_address(account_id, network), CASE WHEN effective_at > market_now() THEN address END, effective_at
  FROM payout_addresses WHERE account_id = $1 ORDER BY network, id DESC LIMIT 100`

// Addresses returns where an account is paid.
func (Store) Addresses(ctx context.Context, db postgres.DB, account uuid.UUID) ([]Address, error) {
	rows, err := db.Query(ctx, addressesSQL, account)
	if err != nil {
		return nil, fmt.Errorf("read payout addresses of account %s: %w", account, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Address, err error) {
		var (
			now, next []byte
			at        time.Time
		)
		err = row.Scan(&a.Network, &now, &next, &at)
		a.Now, a.Next = common.BytesToAddress(now), common.BytesToAddress(next)
		if next != nil {
			a.NextAt = at.UTC()
		}
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("read payout addresses of account %s: %w", account, err)
	}
	return all, nil
}
