package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A Revision is one edit of a listing: what it was and what it became, of the members that changed.
type Revision struct {
	Number   int64 // of the service
	Endpoint *uuid.UUID
	At       time.Time
	By       Author
	Before   json.RawMessage // nil: the endpoint was added
	After    json.RawMessage // nil: the endpoint was retired
}

// revised is a revision that is not written yet.
type revised struct {
	endpoint      *uuid.UUID
	by            Author
	before, after document
}

const reviseSQL = `
WITH counted AS (
	UPDATE services SET revision = revision + 1 WHERE id = $1 RETURNING revision
)
INSERT INTO service_revisions (service_id, revision, endpoint_id, actor, by, before, after)
SELECT $1, revision, $2, $3, $4, $5, $6 FROM counted
RETURNING revision`

// revise keeps an edit and returns its number. The caller holds the service's lock, and its transaction holds the edit.
func revise(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID, r revised) (int64, error) {
	if r.by == (Author{}) {
		return 0, fmt.Errorf("revise service %s: by nobody", serviceID)
	}
	var number int64
	err := tx.QueryRow(ctx, reviseSQL, serviceID, r.endpoint, r.by.Actor, r.by.Name, r.before.stored(), r.after.stored()).Scan(&number)
	if err != nil {
		return 0, fmt.Errorf("revise service %s: %w", serviceID, err)
	}
	return number, nil
}

// stored is the document for a column; nil where there is none.
func (d document) stored() any {
	if d == nil {
		return nil
	}
	return []byte(encodeValue(map[string]any(d)))
}

const revisionsSQL = `
SELECT revision, endpoint_id, at, actor, by, before, after
  FROM service_revisions WHERE service_id = $1 AND ($2 = 0 OR revision < $2) ORDER BY revision DESC LIMIT $3`

// Revisions returns edits of a service, the newest first, and the cursor of the next page, empty after the last.
func (Store) Revisions(ctx context.Context, db postgres.DB, serviceID uuid.UUID, limit int, cursor string) ([]Revision, string, error) {
	if no := checkLimit(limit); no != nil {
		return nil, "", no
	}
	before, ok := readRevisionCursor(cursor)
	if !ok {
		return nil, "", invalidParameter("cursor", "is not one that we gave out")
	}
	rows, err := db.Query(ctx, revisionsSQL, serviceID, before, limit+1)
	if err != nil {
		return nil, "", fmt.Errorf("list revisions of service %s: %w", serviceID, err)
	}
	revisions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Revision, err error) {
		err = row.Scan(&r.Number, &r.Endpoint, &r.At, &r.By.Actor, &r.By.Name, (*[]byte)(&r.Before), (*[]byte)(&r.After))
		return r, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list revisions of service %s: %w", serviceID, err)
	}
	if len(revisions) <= limit {
		return revisions, "", nil
	}
	revisions = revisions[:limit]
	return revisions, writeRevisionCursor(revisions[limit-1].Number), nil
}
