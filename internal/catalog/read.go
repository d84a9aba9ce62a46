package catalog

import (
	"context"
	"fmt"
	"time"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/refusal"
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
