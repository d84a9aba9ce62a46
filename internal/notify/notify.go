// Package notify keeps what the operator has to know: one open notice of a kind and a subject, raised by whoever sees the trouble first, and settled
// when it is over. Whoever raised or settled one is told so, and tells it on.
//
// Times are the database's (market_now()).
package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Kind is what sort of trouble a notice is about.
type Kind string

// OwnOutage is an outage of our own; its subject is the replica, or the fleet.
const OwnOutage Kind = "outage"

// A Notice is what the operator has to know.
type Notice struct {
	ID       uuid.UUID
	Kind     Kind
	Subject  string
	Text     string // what stopped, since when, what that changes, and what to look at
	RaisedAt time.Time
}

// Store keeps notices. Every method takes the caller's db, so that a notice can share a transaction with what it is about.
type Store struct{}

const raiseSQL = `
INSERT INTO notices (id, kind, subject, text) VALUES ($1, $2, $3, $4)
ON CONFLICT (kind, subject) WHERE settled_at IS NULL DO NOTHING`

// Raise makes a notice, unless one of this kind and subject is open, and says whether it did: of many who see one trouble, one is to tell of it.
func (Store) Raise(ctx context.Context, db postgres.DB, kind Kind, subject string, o Outage) (raised bool, err error) {
	tag, err := db.Exec(ctx, raiseSQL, uuid.Must(uuid.NewV7()), kind, subject, o.Text())
	if err != nil {
		return false, fmt.Errorf("raise notice of %s %q: %w", kind, subject, err)
	}
	return tag.RowsAffected() == 1, nil
}

const settleSQL = `
UPDATE notices SET settled_at = market_now() WHERE kind = $1 AND subject = $2 AND settled_at IS NULL`

// Settle closes the open notice of a kind and a subject, and says whether there was one.
func (Store) Settle(ctx context.Context, db postgres.DB, kind Kind, subject string) (settled bool, err error) {
	tag, err := db.Exec(ctx, settleSQL, kind, subject)
	if err != nil {
		return false, fmt.Errorf("settle notice of %s %q: %w", kind, subject, err)
	}
	return tag.RowsAffected() == 1, nil
}

const openSQL = `
SELECT id, kind, subject, text, raised_at FROM notices WHERE kind = $1 AND settled_at IS NULL ORDER BY raised_at, id LIMIT $2`

// openMax bounds the list.
const openMax = 1000

// Open returns the open notices of a kind, the oldest first.
func (Store) Open(ctx context.Context, db postgres.DB, kind Kind) ([]Notice, error) {
	rows, err := db.Query(ctx, openSQL, kind, openMax)
	if err != nil {
		return nil, fmt.Errorf("list notices of %s: %w", kind, err)
	}
	open, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Notice])
	if err != nil {
		return nil, fmt.Errorf("list notices of %s: %w", kind, err)
	}
	return open, nil
}
