package catalog

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/refusal"
)

const (
	allCursorPrefix      = "s1:"
	revisionCursorPrefix = "r1:"
)

// The page is cut before the join, so that LIMIT counts services.
const listAllSQL = columnsSQL + `
  FROM services s
  LEFT JOIN endpoints e ON e.service_id = s.id AND e.retired_at IS NULL` + pricesSQL + `
 WHERE s.id IN (SELECT id FROM services WHERE ($4 = '' OR state = $4) AND id > $2 ORDER BY id LIMIT $3)
 ORDER BY s.id, e.id`

// ListAll returns services in a state, or in whatever state where it is empty, oldest first, and the cursor of the next page, empty after the last.
// Ids are in the order of creation, so a page stays what it was while services are added.
func (Store) ListAll(ctx context.Context, db postgres.DB, state State, limit int, cursor string) ([]*Service, string, error) {
	if no := checkLimit(limit); no != nil {
		return nil, "", no
	}
	after, ok := readCursor(cursor)
	if !ok {
		return nil, "", invalidParameter("cursor", "is not one that we gave out")
	}
	rows, err := db.Query(ctx, listAllSQL, time.Duration(0), after, limit+1, state)
	if err != nil {
		return nil, "", fmt.Errorf("list all services: %w", err)
	}
	services, err := gather(rows, nil, nil)
	if err != nil {
		return nil, "", fmt.Errorf("list all services: %w", err)
	}
	if len(services) <= limit {
		return services, "", nil
	}
	services = services[:limit]
	return services, writeCursor(services[limit-1].ID), nil
}

func checkLimit(limit int) error {
	if limit < 1 || limit > ListLimitMax {
		return invalidParameter("limit", fmt.Sprintf("must be a whole number from 1 to %d", ListLimitMax))
	}
	return nil
}

func invalidParameter(name, message string) error {
	no := refusal.New(call.InvalidParameter, "%s %s", name, message)
	no.Fields = []refusal.Field{{Name: name, Message: message}}
	return no
}

func writeCursor(after uuid.UUID) string {
	return base64.RawURLEncoding.EncodeToString([]byte(allCursorPrefix + after.String()))
}

func readCursor(cursor string) (uuid.UUID, bool) {
	if cursor == "" {
		return uuid.UUID{}, true
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return uuid.UUID{}, false
	}
	id, ok := strings.CutPrefix(string(text), allCursorPrefix)
	if !ok {
		return uuid.UUID{}, false
	}
	after, err := uuid.Parse(id)
	return after, err == nil && after.String() == id
}

// A cursor of revisions is the number of the last one that was shown.
func writeRevisionCursor(before int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(revisionCursorPrefix + strconv.FormatInt(before, 10)))
}

func readRevisionCursor(cursor string) (int64, bool) {
	if cursor == "" {
		return 0, true
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, false
	}
	digits, ok := strings.CutPrefix(string(text), revisionCursorPrefix)
	if !ok {
		return 0, false
	}
	before, err := strconv.ParseInt(digits, 10, 64)
	return before, err == nil && before > 0 && strconv.FormatInt(before, 10) == digits
}
