package identity

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/config"
	"market/internal/postgres"
)

const (
	// SessionTime is how long a session lasts.
	SessionTime = 8 * time.Hour
	// sessionsMax is how many sessions an account has; one more takes the place of the oldest.
	sessionsMax = 50
)

// Store keeps who may do what. Every method takes the caller's db.
type Store struct{}

// An Opened is a session that was opened just now. Nothing shows its token again.
type Opened struct {
	Token   config.Secret
	Expires time.Time
	Account Account
}

const dropSessionsSQL = `
DELETE FROM sessions WHERE token_hash IN
	(SELECT token_hash FROM sessions WHERE account_id = $1 ORDER BY created_at DESC, token_hash OFFSET $2)`

const openSessionSQL = `
INSERT INTO sessions (token_hash, account_id, expires_at) VALUES ($1, $2, market_now() + $3::interval) RETURNING expires_at`

// open makes a session for an account whose row the caller has locked.
func (Store) open(ctx context.Context, tx pgx.Tx, account Account) (Opened, error) {
	if _, err := tx.Exec(ctx, dropSessionsSQL, account.ID, sessionsMax-1); err != nil {
		return Opened{}, fmt.Errorf("open session of %s: %w", account.Wallet, err)
	}
	o := Opened{Token: newToken(sessionPrefix), Account: account}
	if err := tx.QueryRow(ctx, openSessionSQL, digestOf(o.Token.Reveal()), account.ID, SessionTime).Scan(&o.Expires); err != nil {
		return Opened{}, fmt.Errorf("open session of %s: %w", account.Wallet, err)
	}
	return o, nil
}

// The role is read with the session, so that it is never older than the request.
const ofSessionSQL = `
SELECT a.id, a.wallet, s.expires_at, EXISTS (SELECT 1 FROM admins WHERE wallet = a.wallet AND revoked_at IS NULL)
  FROM sessions s JOIN accounts a ON a.id = s.account_id
 WHERE s.token_hash = $1 AND s.ended_at IS NULL AND s.expires_at > market_now()`

// OfSession returns whose session a token is; false where it is none, or has ended.
func (Store) OfSession(ctx context.Context, db postgres.DB, token string) (Principal, bool, error) {
	if KindOf(token) != Session {
		return Principal{}, false, nil
	}
	p := Principal{Kind: Session}
	err := db.QueryRow(ctx, ofSessionSQL, digestOf(token)).Scan(&p.Account, walletOf(&p.Wallet), &p.Expires, &p.Admin)
	return found(p, err, "session")
}

// found tells what is not there from what could not be read.
func found(p Principal, err error, what string) (Principal, bool, error) {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Principal{}, false, nil
	case err != nil:
		return Principal{}, false, fmt.Errorf("find %s: %w", what, err)
	}
	return p, true, nil
}

const endSessionSQL = `
UPDATE sessions SET ended_at = market_now() WHERE token_hash = $1 AND ended_at IS NULL AND expires_at > market_now() RETURNING account_id`

// EndSession ends a session and says whether it was one.
func (Store) EndSession(ctx context.Context, db postgres.DB, token string) (bool, error) {
	var account uuid.UUID
	err := db.QueryRow(ctx, endSessionSQL, digestOf(token)).Scan(&account)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("end session: %w", err)
	}
	return true, nil
}

const (
	// addressesMax is from how many addresses an account is remembered: the latest.
	addressesMax = 50
	// seenEvery is how old what is remembered of an address may get before it is written again.
	seenEvery = time.Hour
)

// Nothing is written for an address that was seen within $3, which is nearly every request. An address of too many makes room by the oldest one.
const sawSQL = `
WITH fresh AS (
	SELECT 1 FROM account_addresses WHERE account_id = $1 AND address = $2 AND seen_at > market_now() - $3::interval
), dropped AS (
	DELETE FROM account_addresses WHERE NOT EXISTS (SELECT 1 FROM fresh) AND account_id = $1 AND address <> $2 AND address IN
		(SELECT address FROM account_addresses WHERE account_id = $1 AND address <> $2 ORDER BY seen_at DESC, address OFFSET $4)
), seen AS (
	UPDATE accounts SET last_seen_at = market_now() WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM fresh)
)
INSERT INTO account_addresses (account_id, address) SELECT $1, $2 WHERE NOT EXISTS (SELECT 1 FROM fresh)
ON CONFLICT (account_id, address) DO UPDATE SET seen_at = market_now()`

// Saw remembers that an account was used from an address.
func (Store) Saw(ctx context.Context, db postgres.DB, account uuid.UUID, from netip.Addr) error {
	if !from.IsValid() || from.IsUnspecified() {
		return nil // not known
	}
	if _, err := db.Exec(ctx, sawSQL, account, from.Unmap().WithZone(""), seenEvery, addressesMax-1); err != nil {
		return fmt.Errorf("remember an address of account %s: %w", account, err)
	}
	return nil
}

// walletOf scans an address.
func walletOf(into *common.Address) *walletScan { return (*walletScan)(into) }

type walletScan common.Address

// ScanBytes takes the twenty bytes that the table holds.
func (w *walletScan) ScanBytes(raw []byte) error {
	if len(raw) != common.AddressLength {
		return fmt.Errorf("a wallet of %d bytes", len(raw))
	}
	copy(w[:], raw)
	return nil
}
