package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/catalog"
	"market/internal/notify"
)

// A HeldNotice is what the operator is told of a service that is held for review, whoever held it, and again when it is held no more.
type HeldNotice struct {
	Service string // slug; empty where none is held because they are too many
	Text    string
	Over    bool
}

// heldNoticesMax bounds one round; what it did not come to is told in the next.
const heldNoticesMax = 1000

// What is held and has no open notice, and what has one and is not held any more.
const heldNoticesSQL = `
SELECT slug FROM services s
 WHERE state = 'held' AND NOT EXISTS (SELECT 1 FROM notices n WHERE n.kind = $1 AND n.subject = s.slug AND n.settled_at IS NULL
                                         AND n.calm_since IS NULL)
UNION ALL
SELECT slug FROM notices n JOIN services s ON s.slug = n.subject
 WHERE n.kind = $1 AND n.settled_at IS NULL AND n.calm_since IS NULL AND s.state <> 'held'
 LIMIT $2`

// notices raises and settles what is to be told of held services, and returns what this process is to tell.
func (h *Holder) notices(ctx context.Context) ([]HeldNotice, error) {
	rows, err := h.db.Query(ctx, heldNoticesSQL, notify.ServiceHeld, heldNoticesMax)
	if err != nil {
		return nil, fmt.Errorf("read what is to be told of held services: %w", err)
	}
	slugs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read what is to be told of held services: %w", err)
	}
	var (
		told []HeldNotice
		errs []error
	)
	for _, slug := range slugs {
		notice, ours, err := h.notice(ctx, slug)
		if err != nil {
			errs = append(errs, fmt.Errorf("tell of held service %s: %w", slug, err))
		}
		if ours {
			told = append(told, notice)
		}
	}
	return told, errors.Join(errs...)
}

// notice says of one service what holds now, while nobody else changes it, and whether this process was the one to say so.
func (h *Holder) notice(ctx context.Context, slug string) (notice HeldNotice, ours bool, err error) {
	err = pgx.BeginFunc(ctx, h.db, func(tx pgx.Tx) error {
		service, err := h.catalog.At(ctx, tx, slug, nil)
		if err != nil {
			return err
		}
		trouble := heldOf(&service)
		notice = HeldNotice{Service: slug, Text: trouble.Text(), Over: service.State != catalog.Held}
		if notice.Over {
			ours, err = h.notifications.Settle(ctx, tx, notify.ServiceHeld, slug)
			return err
		}
		ours, err = h.notifications.Raise(ctx, tx, notify.ServiceHeld, slug, trouble)
		return err
	})
	return notice, ours && err == nil, err
}

// heldOf is for the operator, who may know nothing of the service yet.
func heldOf(s *catalog.Service) notify.Outage {
	since := s.StateSince.UTC().Format("2006-01-02 15:04:05") + " UTC, by " + s.StateBy.Name + ": " + s.StateReason
	if s.State != catalog.Held {
		return notify.Outage{What: fmt.Sprintf("service %s is not held for review any more: it is %s since %s", s.Slug, s.State, since)}
	}
	return notify.Outage{
		What:   fmt.Sprintf("service %s is held for review since %s", s.Slug, since),
		Effect: "nobody can buy it meanwhile; every other service is for sale. Look at what it did, then put it back (relist) or suspend it",
		Look:   fmt.Sprintf("/admin/strikes/%s\nGET /api/v1/services/%s/figures", s.Slug, s.Slug),
	}
}
