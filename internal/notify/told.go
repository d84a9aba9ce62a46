package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Told is an open notice, and whether the operator was told of it.
type Told struct {
	ID       uuid.UUID
	Kind     Kind
	Subject  string
	RaisedAt time.Time
	Channel  string     // that took it; empty: none did yet
	SentAt   *time.Time // nil: it is not sent yet
}

// A notice of a program that sent none has no message.
const toldOfSQL = `
SELECT n.id, n.kind, n.subject, n.raised_at, coalesce(m.channel, ''), m.sent_at
  FROM notices n LEFT JOIN notice_messages m ON m.notice_id = n.id AND m.phase = 'raised'
 WHERE n.kind = ANY($1) AND n.settled_at IS NULL ORDER BY n.raised_at, n.id LIMIT $2`

// ToldOf returns the open notices of some kinds, the oldest first. One that is calm is among them: the next message about its trouble has not come.
func (Store) ToldOf(ctx context.Context, db postgres.DB, kinds []Kind) ([]Told, error) {
	rows, err := db.Query(ctx, toldOfSQL, kinds, openMax)
	if err != nil {
		return nil, fmt.Errorf("list what was told of %v: %w", kinds, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Told])
	if err != nil {
		return nil, fmt.Errorf("list what was told of %v: %w", kinds, err)
	}
	return all, nil
}
