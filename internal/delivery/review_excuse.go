package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/audit"
	"market/internal/catalog"
	"market/internal/outage"
)

// excuse makes the failures ours that an outage excuses: up to its end, where it has one, and of one replica, where it is one's. The guard finds the
// outage; what is changed of a delivery is changed here, as everything that a review changes.
func (r *Review) excuse(ctx context.Context, tx pgx.Tx, o outage.Outage, ended *time.Time, of *uuid.UUID) error {
	if _, err := tx.Exec(ctx, excuseSQL, o.ID, o.Reaches, ended, of, whyExcused); err != nil {
		return fmt.Errorf("excuse failures: %w", err)
	}
	return nil
}

// recount puts a service back where it belongs after evidence of its strikes was excused. It is a decision only where the service moves.
func (r *Review) recount(ctx context.Context, service uuid.UUID, reason string) error {
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if _, err := r.catalog.Lock(ctx, tx, service); err != nil {
			return err
		}
		before, err := r.look(ctx, tx, service)
		if err != nil {
			return err
		}
		moved, err := r.undo(ctx, tx, before, catalog.Change{By: catalog.System, Reason: reason})
		if err != nil || !moved {
			return err
		}
		entry := audit.Entry{Action: audit.Recount, Subject: audit.Service(before.slug), Reason: reason}
		_, err = r.keep(ctx, tx, entry, catalog.System, before, nil)
		return err
	})
	if err != nil {
		return wrapReview(audit.Recount, err)
	}
	return nil
}
