// Package notify keeps what the operator has to know, and tells it: one open notice of a kind and a subject, raised by whoever sees the trouble first, and
// settled when it is over. Whoever raised or settled one is told so, for the log. What is to be sent stands in rows that are written in the same
// transaction; a worker takes them to the first channel that takes them.
//
// Terms:
//
//	notice   a trouble, from when it was noticed until it is over. The open one of a kind and a subject is the latch: nobody is told twice
//	calm     it is over, but for less than CalmFor: if it comes back, it is the same trouble
//	message  what of a notice is sent: that there is a trouble (raised), and that it is over (recovered)
//	channel  mail, or the operator's webhook
//
// A message is sent at least once. It has the same id whenever it is sent again, so that its receiver can drop the second one.
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

// CalmFor is how long a trouble has to be over before the operator is told so. One that is back by then was not over.
const CalmFor = 5 * time.Minute

// Store keeps notices. Every method takes the caller's db, so that a notice can share a transaction with what it is about.
type Store struct{}

// Replicas race for the one open row. A calm one is the same trouble, which came back: it has no new message. Had it been settled a moment ago, the
// conflict is gone, and there is a new notice.
const raiseSQL = `
WITH raised AS (
	INSERT INTO notices AS n (id, kind, subject, text, what, effect, look) VALUES ($1, $2, $3, $4, $5, $6, $7)
	ON CONFLICT (kind, subject) WHERE settled_at IS NULL
	DO UPDATE SET calm_since = NULL, text = $4, what = $5, effect = $6, look = $7 WHERE n.calm_since IS NOT NULL
	RETURNING id
), told AS (
	INSERT INTO notice_messages (notice_id, phase) SELECT id, 'raised' FROM raised WHERE id = $1
)
SELECT count(*) = 1 FROM raised`

// Raise makes a notice, unless one of this kind and subject is open, and says whether it did, or whether a calm one is open again: of many who see one
// trouble, one is to log it. The operator is sent a new one only.
func (Store) Raise(ctx context.Context, db postgres.DB, kind Kind, subject string, o Outage) (raised bool, err error) {
	err = db.QueryRow(ctx, raiseSQL, uuid.Must(uuid.NewV7()), kind, subject, o.Text(), o.What, o.Effect, o.Look).Scan(&raised)
	if err != nil {
		return false, fmt.Errorf("raise notice of %s %q: %w", kind, subject, err)
	}
	return raised, nil
}

const settleSQL = `
UPDATE notices SET calm_since = market_now() WHERE kind = $1 AND subject = $2 AND settled_at IS NULL AND calm_since IS NULL`

// Settle says that the trouble of a kind and a subject is over, and returns whether there was one. The operator is sent that once it has stayed so for
// CalmFor.
func (Store) Settle(ctx context.Context, db postgres.DB, kind Kind, subject string) (settled bool, err error) {
	tag, err := db.Exec(ctx, settleSQL, kind, subject)
	if err != nil {
		return false, fmt.Errorf("settle notice of %s %q: %w", kind, subject, err)
	}
	return tag.RowsAffected() == 1, nil
}

// What was never to be told has no message that it is over.
const recoveredSQL = `, told AS (
	INSERT INTO notice_messages (notice_id, phase)
	SELECT id, 'recovered' FROM settled s
	 WHERE EXISTS (SELECT 1 FROM notice_messages m WHERE m.notice_id = s.id AND m.phase = 'raised' AND m.given_up_at IS NULL)
)
SELECT count(*) FROM settled`

const settleSteadySQL = `
WITH settled AS (
	UPDATE notices SET calm_since = coalesce(calm_since, market_now()), settled_at = market_now()
	 WHERE kind = $1 AND subject = $2 AND settled_at IS NULL
	RETURNING id
)` + recoveredSQL

// SettleSteady is Settle for whoever has watched for as long as CalmFor that the trouble stays away: the operator is sent it now.
func (Store) SettleSteady(ctx context.Context, db postgres.DB, kind Kind, subject string) (settled bool, err error) {
	var n int
	if err := db.QueryRow(ctx, settleSteadySQL, kind, subject).Scan(&n); err != nil {
		return false, fmt.Errorf("settle notice of %s %q: %w", kind, subject, err)
	}
	return n == 1, nil
}

// Replicas race for those that have been calm for long enough; who is about to reopen one holds its row, and is left to it.
const settleCalmSQL = `
WITH settled AS (
	UPDATE notices SET settled_at = market_now()
	 WHERE settled_at IS NULL AND calm_since IS NOT NULL AND id IN (
		SELECT id FROM notices WHERE settled_at IS NULL AND calm_since <= market_now() - $1::interval ORDER BY calm_since LIMIT $2 FOR UPDATE SKIP LOCKED)
	RETURNING id
)` + recoveredSQL

// SettleCalm settles what has been calm for CalmFor.
func (Store) SettleCalm(ctx context.Context, db postgres.DB) error {
	var n int
	if err := db.QueryRow(ctx, settleCalmSQL, CalmFor, openMax).Scan(&n); err != nil {
		return fmt.Errorf("settle calm notices: %w", err)
	}
	return nil
}

const openSQL = `
SELECT id, kind, subject, text, raised_at FROM notices
 WHERE kind = $1 AND settled_at IS NULL AND calm_since IS NULL ORDER BY raised_at, id LIMIT $2`

// openMax bounds a list of them, and what is settled at a time.
const openMax = 1000

// Open returns the open notices of a kind, the oldest first. One that is calm is none of them: whoever sees the trouble raises it again.
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
