package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

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

const ownerSQL = `
SELECT coalesce(owner_id, '00000000-0000-0000-0000-000000000000'::uuid) FROM services WHERE slug = $1`

// OwnerOf returns the account that a service is of, zero where it is the operator's own; a refusal with NotFound where there is none of that name. It
// does not change, so it holds for what is done with the service afterwards.
func (Store) OwnerOf(ctx context.Context, db postgres.DB, slug string) (owner uuid.UUID, err error) {
	if !slugForm.MatchString(slug) {
		return owner, refusal.New(call.NotFound, "no such service")
	}
	err = db.QueryRow(ctx, ownerSQL, slug).Scan(&owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return owner, refusal.New(call.NotFound, "no such service")
	}
	if err != nil {
		return owner, fmt.Errorf("find the owner of service %q: %w", slug, err)
	}
	return owner, nil
}

const ownedSQL = columnsSQL + `
  FROM services s
  LEFT JOIN endpoints e ON e.service_id = s.id AND e.retired_at IS NULL` + pricesSQL + `
 WHERE s.id IN (SELECT id FROM services WHERE owner_id = $2 AND ($3::uuid IS NULL OR id < $3) ORDER BY id DESC LIMIT $4)
 ORDER BY s.id DESC, e.id`

// Owned returns services of an account in whatever state, the newest first, that are older than one of them; zero begins with the newest. The caller has
// checked the limit.
func (Store) Owned(ctx context.Context, db postgres.DB, account uuid.UUID, before uuid.UUID, limit int) ([]*Service, error) {
	rows, err := db.Query(ctx, ownedSQL, time.Duration(0), account, idOrNull(before), limit)
	if err != nil {
		return nil, fmt.Errorf("list services of account %s: %w", account, err)
	}
	services, err := gather(rows, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("list services of account %s: %w", account, err)
	}
	return services, nil
}
