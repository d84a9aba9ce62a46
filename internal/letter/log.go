package letter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Logged letter is one with what became of it.
type Logged struct {
	Letter
	Sendings []Sending // one for each channel that the listing named at the time, in their order
}

// A Sending is what became of a letter by one channel.
type Sending struct {
	Channel  Channel
	Attempts int
	NextAt   time.Time // zero: there is none any more
	SentAt   time.Time // zero: not sent
	GivenUp  time.Time // zero: it was not given up
	Status   int       // of the answer to the last attempt; zero: none came
	Error    string    // of the last attempt
}

const (
	listSQL = `
SELECT id, service_id, kind, at, facts FROM provider_notices
 WHERE service_id = $1 AND ($2::uuid IS NULL OR (at, id) < (SELECT at, id FROM provider_notices WHERE id = $2 AND service_id = $1))
 ORDER BY at DESC, id DESC LIMIT $3`

	sendingsSQL = `
SELECT notice_id, channel, attempts, next_at, sent_at, given_up_at, coalesce(last_status, 0), last_error
  FROM provider_deliveries WHERE notice_id = ANY($1) ORDER BY notice_id, channel`
)

// List returns letters of a service, the newest first: those before one, where it is given, at most limit.
func (Store) List(ctx context.Context, db postgres.DB, service, before uuid.UUID, limit int) ([]Logged, error) {
	var from *uuid.UUID
	if before != (uuid.UUID{}) {
		from = &before
	}
	all, err := letters(db.Query(ctx, listSQL, service, from, limit))
	if err != nil {
		return nil, fmt.Errorf("list letters of service %s: %w", service, err)
	}
	return all, sendings(ctx, db, all)
}

// letters reads letters, without what became of them.
func letters(rows pgx.Rows, err error) ([]Logged, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Logged, err error) {
		var facts []byte
		if err = row.Scan(&l.ID, &l.Service, &l.Kind, &l.At, &facts); err == nil {
			err = json.Unmarshal(facts, &l.Facts)
		}
		return l, err
	})
}

// sendings adds to letters what became of them.
func sendings(ctx context.Context, db postgres.DB, of []Logged) error {
	at, ids := map[uuid.UUID]int{}, make([]uuid.UUID, len(of))
	for i, l := range of {
		at[l.ID], ids[i] = i, l.ID
	}
	rows, err := db.Query(ctx, sendingsSQL, ids)
	if err != nil {
		return fmt.Errorf("list what became of letters: %w", err)
	}
	var (
		id              uuid.UUID
		s               Sending
		next            time.Time
		sentAt, givenUp *time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &s.Channel, &s.Attempts, &next, &sentAt, &givenUp, &s.Status, &s.Error}, func() error {
		one := s
		switch {
		case sentAt != nil:
			one.SentAt = *sentAt
		case givenUp != nil:
			one.GivenUp = *givenUp
		default:
			one.NextAt = next
		}
		of[at[id]].Sendings = append(of[at[id]].Sendings, one)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list what became of letters: %w", err)
	}
	return nil
}

var (
	// ErrNone is that a service has no such letter.
	ErrNone = errors.New("no such letter")
	// ErrNothingFailed is that no sending of a letter failed: each arrived, or has not been tried yet.
	ErrNothingFailed = errors.New("nothing to send again")
)

const (
	findSQL = `
SELECT id, service_id, kind, at, facts FROM provider_notices WHERE id = $1 AND service_id = $2`

	// What arrived stays as it is, and so does what was not tried yet. The waits begin anew.
	againSQL = `
UPDATE provider_deliveries SET attempts_before = attempts, next_at = market_now(), given_up_at = NULL, waits_for_source = false
 WHERE notice_id = $1 AND sent_at IS NULL AND (given_up_at IS NOT NULL OR last_error <> '')`
)

// Again makes a letter due at once where sending it failed, and nowhere else, and returns it as it stands then. Its id stays the same.
func (Store) Again(ctx context.Context, db postgres.DB, service, id uuid.UUID) (Logged, error) {
	found, err := letters(db.Query(ctx, findSQL, id, service))
	switch {
	case err != nil:
		return Logged{}, fmt.Errorf("find letter %s: %w", id, err)
	case len(found) == 0:
		return Logged{}, ErrNone
	}
	tag, err := db.Exec(ctx, againSQL, id)
	if err != nil {
		return Logged{}, fmt.Errorf("send letter %s again: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return Logged{}, ErrNothingFailed
	}
	err = sendings(ctx, db, found)
	return found[0], err
}
