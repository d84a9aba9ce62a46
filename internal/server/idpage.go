package server

import (
	"fmt"

	"github.com/google/uuid"

	"market/internal/catalog"
)

// before is the row that the page begins after, in a list of which the cursor is the id of the last row shown; the zero id on the first page.
func (p page) before() (id uuid.UUID, err error) {
	if err := p.limited(); err != nil || p.cursor == "" {
		return id, err
	}
	if id, err = uuid.Parse(p.cursor); err != nil || id.String() != p.cursor {
		return id, badParameter("cursor", "is not one that we gave out")
	}
	return id, nil
}

// limited refuses a page of a size that none has.
func (p page) limited() error {
	if p.limit < 1 || p.limit > catalog.ListLimitMax {
		return badParameter("limit", fmt.Sprintf("must be a whole number from 1 to %d", catalog.ListLimitMax))
	}
	return nil
}

// cut takes the row beyond the page away that was read to know whether there is one, and returns the cursor of the next page; empty: there is none.
func cut[T any](rows []T, limit int, id func(T) uuid.UUID) (shown []T, next string) {
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], id(rows[limit-1]).String()
}
