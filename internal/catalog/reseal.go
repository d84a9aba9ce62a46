package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/postgres"
)

// resealPage is how many rows are read at once.
const resealPage = 500

// Resealed is what became of the secrets that were not sealed with the current key.
type Resealed struct {
	Done int
	// Lost are services with a secret that none of the keys opens. They are broken until their provider sets it again, or the key is back.
	Lost []string
	// Unsigned are services whose webhook has a secret that none of the keys opens. It signs nothing until another one is made, or the key is back.
	Unsigned []string
}

// A value that changes meanwhile is sealed with whatever key its writer has, and left alone.
const (
	oldHeadersSQL = `
SELECT h.service_id, h.name, h.sealed, s.slug, s.base_url
  FROM service_headers h JOIN services s ON s.id = h.service_id
 WHERE s.state <> 'retired' AND substring(h.sealed FROM 1 FOR length($1::bytea)) <> $1 AND (h.service_id, h.name) > ($2, $3)
 ORDER BY h.service_id, h.name LIMIT $4`

	resealHeaderSQL = `
UPDATE service_headers SET sealed = $4 WHERE service_id = $1 AND name = $2 AND sealed = $3`

	oldSecretsSQL = `
SELECT x.service_id, x.id, x.sealed, s.slug
  FROM service_secrets x JOIN services s ON s.id = x.service_id
 WHERE s.state <> 'retired' AND substring(x.sealed FROM 1 FOR length($1::bytea)) <> $1 AND x.id > $2
 ORDER BY x.id LIMIT $3`

	resealSecretSQL = `
UPDATE service_secrets SET sealed = $2 WHERE id = $1 AND sealed = $3`

	oldNoticeSecretsSQL = `
SELECT x.service_id, x.id, x.sealed, s.slug
  FROM service_notice_secrets x JOIN services s ON s.id = x.service_id
 WHERE s.state <> 'retired' AND substring(x.sealed FROM 1 FOR length($1::bytea)) <> $1 AND x.id > $2
 ORDER BY x.id LIMIT $3`

	resealNoticeSecretSQL = `
UPDATE service_notice_secrets SET sealed = $2 WHERE id = $1 AND sealed = $3`
)

// Reseal seals with the current key what an older one sealed, so that the older one can be taken away. It may run anywhere at any time, and
// many times at once.
func (s Secrets) Reseal(ctx context.Context, db postgres.DB) (Resealed, error) {
	var all Resealed
	if err := s.resealHeaders(ctx, db, &all); err != nil {
		return all, fmt.Errorf("reseal headers: %w", err)
	}
	if err := s.resealSecrets(ctx, db, &all); err != nil {
		return all, fmt.Errorf("reseal secrets: %w", err)
	}
	if err := s.resealNoticeSecrets(ctx, db, &all); err != nil {
		return all, fmt.Errorf("reseal notice secrets: %w", err)
	}
	return all, nil
}

func (s Secrets) resealHeaders(ctx context.Context, db postgres.DB, all *Resealed) error {
	type old struct {
		Service       uuid.UUID
		Name          string
		Sealed        []byte
		Slug, BaseURL string
	}
	var last old
	for {
		rows, err := db.Query(ctx, oldHeadersSQL, s.box.Prefix(), last.Service, last.Name, resealPage)
		if err != nil {
			return err
		}
		page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[old])
		if err != nil || len(page) == 0 {
			return err
		}
		for _, h := range page {
			sealed, err := s.again(h.Sealed, headerContext(h.Service, h.Name, h.BaseURL))
			if err != nil {
				lose(&all.Lost, h.Slug)
				continue
			}
			tag, err := db.Exec(ctx, resealHeaderSQL, h.Service, h.Name, h.Sealed, sealed)
			if err != nil {
				return err
			}
			all.Done += int(tag.RowsAffected())
		}
		last = page[len(page)-1]
	}
}

// An oldSecret is a row of either table of secrets.
type oldSecret struct {
	Service uuid.UUID
	ID      int64
	Sealed  []byte
	Slug    string
}

func (s Secrets) resealSecrets(ctx context.Context, db postgres.DB, all *Resealed) error {
	return s.resealEach(&all.Done, &all.Lost, secretContext, func(after int64) (pgx.Rows, error) {
		return db.Query(ctx, oldSecretsSQL, s.box.Prefix(), after, resealPage)
	}, func(x oldSecret, sealed []byte) (pgconn.CommandTag, error) {
		return db.Exec(ctx, resealSecretSQL, x.ID, sealed, x.Sealed)
	})
}

func (s Secrets) resealNoticeSecrets(ctx context.Context, db postgres.DB, all *Resealed) error {
	return s.resealEach(&all.Done, &all.Unsigned, noticeSecretContext, func(after int64) (pgx.Rows, error) {
		return db.Query(ctx, oldNoticeSecretsSQL, s.box.Prefix(), after, resealPage)
	}, func(x oldSecret, sealed []byte) (pgconn.CommandTag, error) {
		return db.Exec(ctx, resealNoticeSecretSQL, x.ID, sealed, x.Sealed)
	})
}

// resealEach reads a table of secrets page by page, and keeps each that is sealed anew.
func (s Secrets) resealEach(done *int, lost *[]string, of func(service uuid.UUID) []byte, read func(after int64) (pgx.Rows, error),
	keep func(x oldSecret, sealed []byte) (pgconn.CommandTag, error),
) error {
	var last int64
	for {
		rows, err := read(last)
		if err != nil {
			return err
		}
		page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[oldSecret])
		if err != nil || len(page) == 0 {
			return err
		}
		for _, x := range page {
			sealed, err := s.again(x.Sealed, of(x.Service))
			if err != nil {
				lose(lost, x.Slug)
				continue
			}
			tag, err := keep(x, sealed)
			if err != nil {
				return err
			}
			*done += int(tag.RowsAffected())
		}
		last = page[len(page)-1].ID
	}
}

// again seals with the current key what any key of the box sealed.
func (s Secrets) again(sealed, context []byte) ([]byte, error) {
	plain, err := s.box.Open(sealed, context)
	if err != nil {
		return nil, err
	}
	return s.box.Seal(plain, context)
}

// lose names a service once.
func lose(lost *[]string, slug string) {
	if !slices.Contains(*lost, slug) {
		*lost = append(*lost, slug)
	}
}
