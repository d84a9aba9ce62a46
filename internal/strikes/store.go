package strikes

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"market/internal/postgres"
)

// Store keeps strikes. Every method takes the caller's db, so that a strike and the cooldown it starts can share one transaction.
type Store struct{ policy Policy }

// NewStore returns a store that folds and counts by a policy.
func NewStore(p Policy) Store { return Store{policy: p} }

// The caller has locked the service's row in a statement of its own: a lock inside this one would be newer than its snapshot, and three
// concurrent failures would open three strikes. A failure joins the latest strike, whatever became of it, if its call was asked ($3, as
// the database wrote it) before that strike's fold ended, and opens a new one otherwise.
const addSQL = `
WITH latest AS (
	SELECT id, folds_until FROM strikes WHERE service_id = $1 ORDER BY opened_at DESC, id DESC LIMIT 1
), joined AS (
	UPDATE strikes SET last_evidence_at = market_now()
	 WHERE id = (SELECT id FROM latest WHERE $6 AND folds_until > $3)
	RETURNING id
), opened AS (
	INSERT INTO strikes (id, service_id, opened_at, folds_until, last_evidence_at)
	SELECT $4, $1, market_now(), market_now() + $5::interval, market_now()
	 WHERE NOT EXISTS (SELECT 1 FROM joined)
	RETURNING id
), evidence AS (
	INSERT INTO strike_deliveries (strike_id, delivery_id, error, content_type, snippet, body_bytes, body_cut, body_sha256, others_asked, others_failed)
	SELECT coalesce((SELECT id FROM opened), (SELECT id FROM joined)), $2, $7, $8, $9, $10, $11, $12, $13, $14
	RETURNING strike_id
)
SELECT strike_id, EXISTS (SELECT 1 FROM opened) FROM evidence`

// Added says of which strike a failure is evidence.
type Added struct {
	Strike uuid.UUID
	Opened bool // by this failure
}

// Add keeps a failed delivery of a service as evidence: of the latest strike while that folds, or of a new one. The service's row must be locked
// by the same transaction.
func (s Store) Add(ctx context.Context, db postgres.DB, f Failure) (a Added, err error) {
	err = db.QueryRow(ctx, addSQL, f.Service, f.Delivery, f.AskedAt, uuid.Must(uuid.NewV7()), s.policy.Fold, s.policy.Fold > 0,
		f.Error, f.Said.ContentType, f.Said.Snippet, f.Said.Bytes, f.Said.Cut, f.Said.SHA256, f.Others.Asked, f.Others.Failed).Scan(&a.Strike, &a.Opened)
	if err != nil {
		return Added{}, fmt.Errorf("add strike of service %s: %w", f.Service, err)
	}
	return a, nil
}

const countOpenSQL = `
SELECT count(*) FROM strikes WHERE service_id = $1 AND state = 'open' AND opened_at > market_now() - $2::interval`

// CountOpen returns how many open strikes of a service lie inside the window.
func (s Store) CountOpen(ctx context.Context, db postgres.DB, service uuid.UUID) (int, error) {
	var n int
	if err := db.QueryRow(ctx, countOpenSQL, service, s.policy.Window).Scan(&n); err != nil {
		return 0, fmt.Errorf("count strikes of service %s: %w", service, err)
	}
	return n, nil
}

// Policy returns what the store counts by.
func (s Store) Policy() Policy { return s.policy }
