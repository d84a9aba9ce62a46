package notify

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Listed notice is one with what became of it.
type Listed struct {
	ID        uuid.UUID
	Kind      Kind
	Subject   string
	Outage    Outage // of one that is older than its parts, What is all of it
	RaisedAt  time.Time
	CalmSince time.Time // when it was over; zero: it holds, or was given up before
	SettledAt time.Time // when it counted as over; zero: it is open
	Messages  []Sending // the first first
}

// A Sending is how the sending of a message went.
type Sending struct {
	Phase     Phase
	Attempts  int // that went wrong
	LastError string
	Channel   string // that took it; empty: none did yet
	SentAt    time.Time
	NextAt    time.Time // zero: it is not tried any more
	GivenUpAt time.Time
}

const (
	listSQL = `
SELECT id, kind, subject, coalesce(nullif(what, ''), text), effect, look, raised_at, calm_since, settled_at
  FROM notices
 WHERE $1::uuid IS NULL OR (raised_at, id) < (SELECT raised_at, id FROM notices WHERE id = $1)
 ORDER BY raised_at DESC, id DESC LIMIT $2`

	sendingsSQL = `
SELECT notice_id, phase, attempts, last_error, channel, sent_at, CASE WHEN sent_at IS NULL AND given_up_at IS NULL THEN next_at END, given_up_at
  FROM notice_messages WHERE notice_id = ANY($1) ORDER BY notice_id, made_at, phase`
)

// List returns notices, the newest first: those before a certain one, or from the newest on where that is the zero id.
func (Store) List(ctx context.Context, db postgres.DB, before uuid.UUID, limit int) ([]Listed, error) {
	var from *uuid.UUID
	if before != (uuid.UUID{}) {
		from = &before
	}
	rows, err := db.Query(ctx, listSQL, from, limit)
	if err != nil {
		return nil, fmt.Errorf("list notices: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n Listed, err error) {
		var calm, settled *time.Time
		err = row.Scan(&n.ID, &n.Kind, &n.Subject, &n.Outage.What, &n.Outage.Effect, &n.Outage.Look, &n.RaisedAt, &calm, &settled)
		n.CalmSince, n.SettledAt = orZero(calm), orZero(settled)
		return n, err
	})
	if err != nil {
		return nil, fmt.Errorf("list notices: %w", err)
	}
	at := map[uuid.UUID]int{}
	ids := make([]uuid.UUID, 0, len(all))
	for i, n := range all {
		at[n.ID] = i
		ids = append(ids, n.ID)
	}
	if rows, err = db.Query(ctx, sendingsSQL, ids); err != nil {
		return nil, fmt.Errorf("list messages of notices: %w", err)
	}
	var (
		id                  uuid.UUID
		s                   Sending
		sent, next, givenUp *time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &s.Phase, &s.Attempts, &s.LastError, &s.Channel, &sent, &next, &givenUp}, func() error {
		s.SentAt, s.NextAt, s.GivenUpAt = orZero(sent), orZero(next), orZero(givenUp)
		of := &all[at[id]]
		of.Messages = append(of.Messages, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list messages of notices: %w", err)
	}
	return all, nil
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

const openCountSQL = `SELECT count(*) FROM notices WHERE settled_at IS NULL AND calm_since IS NULL`

// CountOpen is how many troubles hold now.
func (Store) CountOpen(ctx context.Context, db postgres.DB) (n int, err error) {
	if err := db.QueryRow(ctx, openCountSQL).Scan(&n); err != nil {
		return 0, fmt.Errorf("count open notices: %w", err)
	}
	return n, nil
}

const unsentSQL = `
SELECT count(*), coalesce(extract(epoch FROM market_now() - min(made_at)), 0)::float8 FROM notice_messages WHERE sent_at IS NULL AND given_up_at IS NULL`

// Unsent is how many messages wait to be sent, and how old the oldest is.
func (Store) Unsent(ctx context.Context, db postgres.DB) (n int64, oldest time.Duration, err error) {
	var seconds float64
	if err := db.QueryRow(ctx, unsentSQL).Scan(&n, &seconds); err != nil {
		return 0, 0, fmt.Errorf("count unsent notices: %w", err)
	}
	return n, time.Duration(seconds * float64(time.Second)), nil
}
