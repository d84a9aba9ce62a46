package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/refusal"
)

const accountSQL = `
SELECT a.id, a.wallet, a.plan, a.created_at, a.last_seen_at,
       EXISTS (SELECT 1 FROM admins WHERE wallet = a.wallet AND revoked_at IS NULL),
       (SELECT count(*) FROM services WHERE owner_id = a.id AND state <> 'retired')
  FROM accounts a`

func scanAccount(row pgx.CollectableRow) (a Account, err error) {
	err = row.Scan(&a.ID, walletOf(&a.Wallet), &a.Plan, &a.CreatedAt, &a.LastSeenAt, &a.Admin, &a.Services)
	return a, err
}

func (Store) one(ctx context.Context, db postgres.DB, sql string, arg any) (Account, error) {
	rows, err := db.Query(ctx, sql, arg)
	if err != nil {
		return Account{}, fmt.Errorf("find account: %w", err)
	}
	a, err := pgx.CollectExactlyOneRow(rows, scanAccount)
	if errors.Is(err, pgx.ErrNoRows) {
		return Account{}, refusal.New(call.NotFound, "there is no such account")
	}
	if err != nil {
		return Account{}, fmt.Errorf("find account: %w", err)
	}
	return a, nil
}

const byIDSQL = accountSQL + `
 WHERE a.id = $1`

// ByID returns an account; a refusal with NotFound where there is none.
func (s Store) ByID(ctx context.Context, db postgres.DB, id uuid.UUID) (Account, error) {
	return s.one(ctx, db, byIDSQL, id)
}

const byWalletSQL = accountSQL + `
 WHERE a.wallet = $1`

// ByWallet returns the account of a wallet; a refusal with NotFound where it never signed in.
func (s Store) ByWallet(ctx context.Context, db postgres.DB, wallet common.Address) (Account, error) {
	return s.one(ctx, db, byWalletSQL, wallet[:])
}

const listSQL = accountSQL + `
 WHERE $1 = '00000000-0000-0000-0000-000000000000'::uuid OR a.id < $1 ORDER BY a.id DESC LIMIT $2`

// List returns accounts, the newest first, that are older than one of them; zero begins with the newest. The caller has checked the limit.
func (Store) List(ctx context.Context, db postgres.DB, before uuid.UUID, limit int) ([]Account, error) {
	rows, err := db.Query(ctx, listSQL, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	accounts, err := pgx.CollectRows(rows, scanAccount)
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	return accounts, nil
}

// The lock is alone in its statement: what is counted after it in the transaction is everything that was committed before it was had.
const lockSQL = `
SELECT plan FROM accounts WHERE id = $1 FOR NO KEY UPDATE`

// Lock makes the transaction the only one that counts and adds what an account has, and returns the account's plan.
func (Store) Lock(ctx context.Context, tx pgx.Tx, id uuid.UUID) (string, error) {
	var plan string
	err := tx.QueryRow(ctx, lockSQL, id).Scan(&plan)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", refusal.New(call.NotFound, "there is no such account")
	}
	if err != nil {
		return "", fmt.Errorf("lock account %s: %w", id, err)
	}
	return plan, nil
}

const setPlanSQL = `
UPDATE accounts SET plan = $2 WHERE id = $1`

// SetPlan puts an account on a plan, and returns the one that it was on. The caller knows that there is such a plan.
func (s Store) SetPlan(ctx context.Context, tx pgx.Tx, id uuid.UUID, plan string) (before string, err error) {
	if before, err = s.Lock(ctx, tx, id); err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, setPlanSQL, id, plan); err != nil {
		return "", fmt.Errorf("set plan of account %s: %w", id, err)
	}
	return before, nil
}

// Times after which rows are of no use.
const (
	sessionsKept = 24 * time.Hour      // after their end
	revokedKept  = 90 * 24 * time.Hour // keys, for the list of them
	unusedKept   = 30 * 24 * time.Hour // accounts that have nothing and were not seen
	signInsKept  = time.Hour           // far longer than a nonce is good
)

const (
	tidySessionsSQL = `
DELETE FROM sessions WHERE token_hash IN
	(SELECT token_hash FROM sessions WHERE expires_at <= market_now() - $2::interval ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)`
	tidySignInsSQL = `
DELETE FROM sign_ins WHERE nonce IN
	(SELECT nonce FROM sign_ins WHERE at <= market_now() - $2::interval ORDER BY at LIMIT $1 FOR UPDATE SKIP LOCKED)`
	tidyAddressesSQL = `
DELETE FROM account_addresses WHERE (account_id, address) IN
	(SELECT account_id, address FROM account_addresses WHERE seen_at <= market_now() - $2::interval ORDER BY seen_at LIMIT $1 FOR UPDATE SKIP LOCKED)`
	tidyKeysSQL = `
DELETE FROM api_keys WHERE id IN
	(SELECT id FROM api_keys WHERE coalesce(revoked_at, expires_at) <= market_now() - $2::interval LIMIT $1 FOR UPDATE SKIP LOCKED)`
	// A wallet that signed in and did nothing is not kept for ever: anybody can make a million of them.
	tidyAccountsSQL = `
DELETE FROM accounts WHERE id IN
	(SELECT id FROM accounts a
	  WHERE last_seen_at <= market_now() - $2::interval AND plan = ''
	    AND NOT EXISTS (SELECT 1 FROM services WHERE owner_id = a.id)
	    AND NOT EXISTS (SELECT 1 FROM api_keys WHERE account_id = a.id)
	    AND NOT EXISTS (SELECT 1 FROM sessions WHERE account_id = a.id)
	    AND NOT EXISTS (SELECT 1 FROM account_addresses WHERE account_id = a.id)
	  ORDER BY last_seen_at LIMIT $1 FOR UPDATE SKIP LOCKED)`
)

// DeleteExpired forgets what is of no use any more, up to limit rows of each kind, and returns how many those were.
func (Store) DeleteExpired(ctx context.Context, db postgres.DB, limit int) (int, error) {
	deleted := 0
	for _, of := range []struct {
		what, sql string
		after     time.Duration
	}{
		{"sessions", tidySessionsSQL, sessionsKept},
		{"sign-ins", tidySignInsSQL, signInsKept},
		{"addresses", tidyAddressesSQL, AddressesKept},
		{"keys", tidyKeysSQL, revokedKept},
		{"accounts", tidyAccountsSQL, unusedKept},
	} {
		tag, err := db.Exec(ctx, of.sql, limit, of.after)
		if err != nil {
			return deleted, fmt.Errorf("delete old %s: %w", of.what, err)
		}
		deleted += int(tag.RowsAffected())
	}
	return deleted, nil
}
