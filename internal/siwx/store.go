package siwx

import (
	"context"
	"fmt"
	"time"

	"market/internal/postgres"
)

// forgetAfter is how long a nonce is kept after its sign-in has run out: far longer than the clock of a process that verifies, and that
// of the database, which deletes, may be apart.
const forgetAfter = time.Hour

// Store keeps the nonces of sign-ins that were used. Every method takes the caller's db.
type Store struct{}

const useOnceSQL = `INSERT INTO siwx_nonces (address, nonce, until) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

// UseOnce says whether this is the first use of a sign-in. Of many at once, on whatever replica, one is the first. It writes a row for
// whoever can sign, so the caller asks first whether the address is one that it would let in.
func (Store) UseOnce(ctx context.Context, db postgres.DB, p Proof) (bool, error) {
	tag, err := db.Exec(ctx, useOnceSQL, p.Address[:], p.Nonce, p.ExpiresAt)
	if err != nil {
		return false, fmt.Errorf("use sign-in of %s: %w", p.Address, err)
	}
	return tag.RowsAffected() == 1, nil
}

const deleteExpiredSQL = `
DELETE FROM siwx_nonces WHERE (address, nonce) IN
	(SELECT address, nonce FROM siwx_nonces WHERE until <= market_now() - $2::interval ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED)`

// DeleteExpired forgets up to limit nonces that can not be used again anyway and returns how many; fewer than limit means that none is left.
func (Store) DeleteExpired(ctx context.Context, db postgres.DB, limit int) (int, error) {
	tag, err := db.Exec(ctx, deleteExpiredSQL, limit, forgetAfter)
	if err != nil {
		return 0, fmt.Errorf("delete expired sign-ins: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
