package siwx

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/postgres"
)

// forgetAfter is how long a nonce is kept after its sign-in has run out: far longer than the clock of a process that verifies, and that
// of the database, which deletes, may be apart.
const forgetAfter = time.Hour

// Store keeps the nonces of sign-ins that were used. Every method takes the caller's db.
type Store struct{}

const useOnceSQL = `INSERT INTO siwx_nonces (address, nonce, until) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

// UseOnce says whether this is the first use of a nonce by an address. Of many at once, on whatever replica, one is the first. until is
// when the sign-in runs out.
func (Store) UseOnce(ctx context.Context, db postgres.DB, address common.Address, nonce string, until time.Time) (bool, error) {
	tag, err := db.Exec(ctx, useOnceSQL, address[:], nonce, until)
	if err != nil {
		return false, fmt.Errorf("use sign-in of %s: %w", address, err)
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
