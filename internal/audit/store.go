package audit

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// Store keeps entries. Every method takes the caller's db, so that an entry shares the transaction of what it tells.
type Store struct{}

const addSQL = `
INSERT INTO audit (actor, by, action, subject_kind, subject, service_id, reason, before, after)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
RETURNING id, at`

// Add keeps an entry and returns it with its number and its time. One that leaves out who, what or why is an error.
func (Store) Add(ctx context.Context, db postgres.DB, e Entry) (Entry, error) {
	if err := e.check(); err != nil {
		return Entry{}, fmt.Errorf("keep %s of %s %s: %w", e.Action, e.Subject.Kind, e.Subject.Name, err)
	}
	err := db.QueryRow(ctx, addSQL, e.Actor, e.By, e.Action, e.Subject.Kind, e.Subject.Name, idOrNull(e.Service), e.Reason,
		[]byte(e.Before), []byte(e.After)).Scan(&e.ID, &e.At)
	if err != nil {
		return Entry{}, fmt.Errorf("keep %s of %s %s: %w", e.Action, e.Subject.Kind, e.Subject.Name, err)
	}
	return e, nil
}

func idOrNull(id uuid.UUID) *uuid.UUID {
	if id == (uuid.UUID{}) {
		return nil
	}
	return &id
}

const columnsSQL = `
SELECT a.id, a.at, a.actor, a.by, a.action, a.subject_kind, a.subject, coalesce(a.service_id, '00000000-0000-0000-0000-000000000000'::uuid),
       coalesce(s.slug, ''), a.reason, a.before, a.after
  FROM audit a LEFT JOIN services s ON s.id = a.service_id`

func scan(row pgx.CollectableRow) (e Entry, err error) {
	err = row.Scan(&e.ID, &e.At, &e.Actor, &e.By, &e.Action, &e.Subject.Kind, &e.Subject.Name, &e.Service, &e.Slug, &e.Reason,
		(*[]byte)(&e.Before), (*[]byte)(&e.After))
	return e, err
}

const listSQL = columnsSQL + `
 WHERE ($1::uuid IS NULL OR a.service_id = $1) AND ($2 = 0 OR a.id < $2) ORDER BY a.id DESC LIMIT $3`

// List returns entries, of one service where one is given, the newest first, and the cursor of the next page, empty after the last. ok is false for a
// cursor that List did not give out. The caller has checked the limit.
func (Store) List(ctx context.Context, db postgres.DB, service uuid.UUID, limit int, cursor string) (entries []Entry, next string, ok bool, err error) {
	before, ok := readCursor(cursor)
	if !ok {
		return nil, "", false, nil
	}
	rows, err := db.Query(ctx, listSQL, idOrNull(service), before, limit+1)
	if err != nil {
		return nil, "", true, fmt.Errorf("list the audit: %w", err)
	}
	entries, err = pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, "", true, fmt.Errorf("list the audit: %w", err)
	}
	if len(entries) > limit {
		entries = entries[:limit]
		next = writeCursor(entries[limit-1].ID)
	}
	return entries, next, true, nil
}

const latestSQL = columnsSQL + `
  JOIN (SELECT DISTINCT ON (subject) id FROM audit WHERE subject_kind = $1 AND subject = ANY($2) ORDER BY subject, id DESC) newest ON newest.id = a.id`

// Latest returns the newest entry about each of some subjects of one kind, by name. Subjects about which nothing was decided are not in it.
func (Store) Latest(ctx context.Context, db postgres.DB, kind Kind, names []string) (map[string]Entry, error) {
	rows, err := db.Query(ctx, latestSQL, kind, names)
	if err != nil {
		return nil, fmt.Errorf("read decisions: %w", err)
	}
	entries, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read decisions: %w", err)
	}
	latest := make(map[string]Entry, len(entries))
	for _, e := range entries {
		latest[e.Subject.Name] = e
	}
	return latest, nil
}

// LatestOf returns the newest entry about one subject; decided is false where there is none.
func (s Store) LatestOf(ctx context.Context, db postgres.DB, of Subject) (made Entry, decided bool, err error) {
	latest, err := s.Latest(ctx, db, of.Kind, []string{of.Name})
	if err != nil {
		return Entry{}, false, err
	}
	made, decided = latest[of.Name]
	return made, decided, nil
}

const cursorPrefix = "a1:"

// A cursor is the number of the last entry that was shown.
func writeCursor(before int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + strconv.FormatInt(before, 10)))
}

func readCursor(cursor string) (int64, bool) {
	if cursor == "" {
		return 0, true
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, false
	}
	digits, ok := strings.CutPrefix(string(text), cursorPrefix)
	if !ok {
		return 0, false
	}
	before, err := strconv.ParseInt(digits, 10, 64)
	return before, err == nil && before > 0 && strconv.FormatInt(before, 10) == digits
}
