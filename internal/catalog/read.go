package catalog

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/refusal"
)

const (
	// ListLimitMax and ListLimitDefault are how many services one page has.
	ListLimitMax     = 100
	ListLimitDefault = 20

	cursorPrefix = "s1:"
)

const findSQL = columnsSQL + `
  FROM services s
  LEFT JOIN endpoints e ON e.service_id = s.id AND e.retired_at IS NULL` + pricesSQL + `
 WHERE s.slug = $2
 ORDER BY e.id`

// Find returns a service in whatever state, with the endpoints on its shelf and their current prices; a refusal with NotFound where
// there is none of that name.
func (Store) Find(ctx context.Context, db postgres.DB, slug string) (Service, error) {
	// Not every string that a stranger sends is a text to the database.
	if !slugForm.MatchString(slug) {
		return Service{}, refusal.New(call.NotFound, "no such service")
	}
	// No older price: the quote validity is the request path's business.
	rows, err := db.Query(ctx, findSQL, time.Duration(0), slug)
	if err != nil {
		return Service{}, fmt.Errorf("find service %q: %w", slug, err)
	}
	services, err := gather(rows, nil, nil)
	if err != nil {
		return Service{}, fmt.Errorf("find service %q: %w", slug, err)
	}
	if len(services) == 0 {
		return Service{}, refusal.New(call.NotFound, "no such service")
	}
	return *services[0], nil
}

// The page is cut before the join, so that LIMIT counts services.
const listSQL = columnsSQL + `
  FROM services s
  LEFT JOIN endpoints e ON e.service_id = s.id AND e.retired_at IS NULL` + pricesSQL + `
 WHERE s.id IN (SELECT id FROM services WHERE state = 'listed' AND id > $2 ORDER BY id LIMIT $3)
 ORDER BY s.id, e.id`

// List returns listed services, oldest first, and the cursor of the next page, empty after the last. Ids are in the order of
// creation, so a page stays what it was while services are added.
func (Store) List(ctx context.Context, db postgres.DB, limit int, cursor string) ([]*Service, string, error) {
	if limit < 1 || limit > ListLimitMax {
		return nil, "", invalidParameter("limit", fmt.Sprintf("must be a whole number from 1 to %d", ListLimitMax))
	}
	after, ok := readCursor(cursor)
	if !ok {
		return nil, "", invalidParameter("cursor", "is not one that we gave out")
	}
	rows, err := db.Query(ctx, listSQL, time.Duration(0), after, limit+1)
	if err != nil {
		return nil, "", fmt.Errorf("list services: %w", err)
	}
	services, err := gather(rows, nil, nil)
	if err != nil {
		return nil, "", fmt.Errorf("list services: %w", err)
	}
	if len(services) <= limit {
		return services, "", nil
	}
	services = services[:limit]
	return services, writeCursor(services[limit-1].ID), nil
}

func invalidParameter(name, message string) error {
	no := refusal.New(call.InvalidParameter, "%s %s", name, message)
	no.Fields = []refusal.Field{{Name: name, Message: message}}
	return no
}

func writeCursor(after uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + after.String()))
}

func readCursor(cursor string) (uuid.UUID, bool) {
	if cursor == "" {
		return uuid.UUID{}, true
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return uuid.UUID{}, false
	}
	id, ok := strings.CutPrefix(string(text), cursorPrefix)
	if !ok {
		return uuid.UUID{}, false
	}
	after, err := uuid.Parse(id)
	return after, err == nil && after.String() == id
}
