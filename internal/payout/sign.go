package payout

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/chain"
	"market/internal/postgres"
)

// A signature that was, or may have been, shown.
type signature struct {
	validBefore uint64
	fromBlock   uint64 // it has not left by this one before
	to          common.Address
	bytes       chain.Signature
}

const signatureSQL = `
SELECT valid_before, from_block, address, signature FROM payout_signatures WHERE payout_id = $1 ORDER BY valid_before DESC LIMIT 1`

// lastSigned returns what of a payout was signed that is valid longest; nil: nothing was.
func (Store) lastSigned(ctx context.Context, db postgres.DB, id uuid.UUID) (*signature, error) {
	rows, err := db.Query(ctx, signatureSQL, id)
	if err != nil {
		return nil, fmt.Errorf("read signatures of payout %s: %w", id, err)
	}
	signed, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (signature, error) {
		var (
			validBefore, from int64
			to, raw           []byte
		)
		if err := row.Scan(&validBefore, &from, &to, &raw); err != nil {
			return signature{}, err
		}
		parsed, err := chain.ParseSignature(raw)
		return signature{uint64(validBefore), uint64(from), common.BytesToAddress(to), parsed}, err //nolint:gosec // written from a uint64 below 2^63
	})
	if err != nil {
		return nil, fmt.Errorf("read signatures of payout %s: %w", id, err)
	}
	if len(signed) == 0 {
		return nil, nil
	}
	return &signed[0], nil
}

// lockSQL is a statement of its own: what is read after it is newer than the lock. Whoever holds or cancels it, or signs it, waits for the row.
const lockSQL = `SELECT 1 FROM payouts WHERE id = $1 FOR UPDATE`

const addSignatureSQL = `INSERT INTO payout_signatures (payout_id, valid_before, from_block, address, signature) VALUES ($1, $2, $3, $4, $5)`

const markSentSQL = `UPDATE payouts SET state = 'sent', address = $2, signed_at = coalesce(signed_at, market_now()) WHERE id = $1`

const lapsedSQL = `UPDATE payouts SET state = 'owed' WHERE id = $1 AND state = 'sent'`

// A mark is what was known when it was decided to send: nothing is sent where another one holds by now.
type mark struct {
	lapsed uint64     // everything that was signed is valid until here at most, and proved lapsed; 0: nothing was signed
	alive  bool       // what was signed until lapsed is not: it is shown again
	sign   *signature // to be written; nil where alive
}

// admit decides with the row locked whether a payout is sent now, and writes the intent before the act: from here on the authorization counts as shown. why says
// what stands against it; empty: nothing does.
func (s Store) admit(ctx context.Context, tx pgx.Tx, id uuid.UUID, m mark) (why string, err error) {
	if _, err := tx.Exec(ctx, lockSQL, id); err != nil {
		return "", fmt.Errorf("lock payout %s: %w", id, err)
	}
	p, err := s.Find(ctx, tx, id)
	if err != nil {
		return "", err
	}
	last, err := s.lastSigned(ctx, tx, id)
	if err != nil {
		return "", err
	}
	var newest uint64
	if last != nil {
		newest = last.validBefore
	}
	switch {
	case p.Ended():
		return "it has ended", nil
	case newest != m.lapsed:
		return "another one has signed it meanwhile", nil
	case p.stops() != "":
		if !m.alive {
			if _, err := tx.Exec(ctx, lapsedSQL, id); err != nil {
				return "", fmt.Errorf("mark payout %s owed again: %w", id, err)
			}
		}
		return p.stops(), nil
	case m.alive:
		return "", nil
	}
	_, err = tx.Exec(ctx, addSignatureSQL, id, int64(m.sign.validBefore), int64(m.sign.fromBlock), m.sign.to[:], m.sign.bytes.Bytes()) //nolint:gosec // seconds, and blocks
	if err != nil {
		return "", fmt.Errorf("write signature of payout %s: %w", id, err)
	}
	if _, err := tx.Exec(ctx, markSentSQL, id, m.sign.to[:]); err != nil {
		return "", fmt.Errorf("mark payout %s sent: %w", id, err)
	}
	return "", nil
}

// stops says why it may not be sent now; empty: it may.
func (p Payout) stops() string {
	if p.Held {
		return "held by the operator"
	}
	return p.Stopped
}

const effectiveSQL = `SELECT payout_address($1, $2)`

// effective returns the address that an account is paid to now; zero: none.
func (Store) effective(ctx context.Context, db postgres.DB, account uuid.UUID, network string) (common.Address, error) {
	var raw []byte
	if err := db.QueryRow(ctx, effectiveSQL, account, network).Scan(&raw); err != nil {
		return common.Address{}, fmt.Errorf("read payout address of account %s: %w", account, err)
	}
	return common.BytesToAddress(raw), nil
}
