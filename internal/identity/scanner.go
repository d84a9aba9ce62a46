package identity

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/refusal"
)

// Scanner is the scope of the keys that the operator's own scanners send with their calls. Such a key permits nothing and opens nothing: it only says
// whose traffic a call is, so it has no other scope, and only an admin gets one.
const Scanner Scope = "scanner"

// scannersMax is how many keys of scanners are kept in memory.
const scannersMax = 1000

// A key of who is no admin any more is none: the role is the reason to believe it.
const scannersSQL = `
SELECT k.token_hash, k.expires_at
  FROM api_keys k JOIN accounts a ON a.id = k.account_id JOIN admins m ON m.wallet = a.wallet AND m.revoked_at IS NULL
 WHERE k.scopes = ARRAY[$1::text] AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > market_now())
 ORDER BY k.created_at DESC LIMIT $2`

// scanners are the keys that are good, by their digests, and until when; the zero time: they do not end.
type scanners map[[sha256.Size]byte]time.Time

func readScanners(ctx context.Context, db postgres.DB) (scanners, error) {
	rows, err := db.Query(ctx, scannersSQL, Scanner, scannersMax)
	if err != nil {
		return nil, fmt.Errorf("load keys of scanners: %w", err)
	}
	next := scanners{}
	var (
		digest  []byte
		expires *time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&digest, &expires}, func() error {
		if len(digest) == sha256.Size {
			next[[sha256.Size]byte(digest)] = orZero(expires)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load keys of scanners: %w", err)
	}
	return next, nil
}

// Scanner says whether a token is the key of one of our own scanners now. It asks the database nothing, so it may be late by a notification.
func (b *Board) Scanner(token string, now time.Time) bool {
	if KindOf(token) != Key {
		return false
	}
	until, known := (*b.scanners.Load())[sha256.Sum256([]byte(token))]
	return known && (until.IsZero() || now.Before(until))
}

const ofAdminSQL = `
SELECT EXISTS (SELECT 1 FROM accounts a JOIN admins m ON m.wallet = a.wallet AND m.revoked_at IS NULL WHERE a.id = $1)`

// forScanners refuses a key for scanners to an account whose wallet is no admin.
func forScanners(ctx context.Context, tx pgx.Tx, account uuid.UUID, d KeyDraft) error {
	if !slices.Contains(d.Scopes, Scanner) {
		return nil
	}
	var is bool
	if err := tx.QueryRow(ctx, ofAdminSQL, account).Scan(&is); err != nil {
		return fmt.Errorf("look for the role of account %s: %w", account, err)
	}
	if !is {
		return refusal.New(call.Forbidden, "keys with the scope %s are for admins", Scanner)
	}
	return nil
}
