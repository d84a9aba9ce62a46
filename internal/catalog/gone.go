package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
	"market/internal/refusal"
)

const goneSQL = `
SELECT state, state_cause, state_reason, state_since FROM services WHERE slug = $1 AND state = 'retired'`

// Gone says what became of a service that the snapshot does not have: a refusal with NotListed for one that was retired, whenever that was, so that
// no listing vanishes without a reason; nil where there is none of that name, or where it is for sale and the snapshot is behind.
func (Store) Gone(ctx context.Context, db postgres.DB, slug string) (*refusal.Error, error) {
	if !slugForm.MatchString(slug) {
		return nil, nil
	}
	var s Service
	err := db.QueryRow(ctx, goneSQL, slug).Scan(&s.State, &s.StateCause, &s.StateReason, &s.StateSince)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find what became of service %q: %w", slug, err)
	}
	return s.notListed(), nil
}
