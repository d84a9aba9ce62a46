package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/outage"
	"market/internal/postgres"
	"market/internal/refusal"
)

// excuse makes those of the next failures ours, so many at most, that an outage excuses: up to its end, where it has one, and of one replica, where it is one's. It
// returns where to go on, or that there are no more. The guard finds the outage; what is changed of a delivery is changed here, as everything that a
// review changes.
func (r *Review) excuse(ctx context.Context, tx pgx.Tx, o outage.Outage, from failureAt, most int) (next failureAt, done bool, err error) {
	var (
		ended *time.Time
		of    *uuid.UUID
	)
	if !o.Ended.IsZero() {
		ended = &o.Ended
	}
	if o.Replica != (uuid.UUID{}) {
		of = &o.Replica
	}
	rows, err := tx.Query(ctx, excuseSQL, o.ID, from.recorded, ended, of, whyExcused, from.id, most)
	if err != nil {
		return from, false, fmt.Errorf("excuse failures: %w", err)
	}
	n := 0
	next = from
	if _, err = pgx.ForEachRow(rows, []any{&next.recorded, &next.id}, func() error { n++; return nil }); err != nil {
		return from, false, fmt.Errorf("excuse failures: %w", err)
	}
	return next, n < most, nil
}

const groundedSQL = `
SELECT EXISTS (SELECT 1 FROM strike_deliveries sd JOIN deliveries d ON d.id = sd.delivery_id
                WHERE sd.strike_id = $1 AND d.excused_by IS NULL)`

// stillGroundless refuses with Conflict where a strike has evidence that no outage excuses. The program finds what is groundless without a lock: a failure
// may have joined the strike while it waited for the row of the service, which is its own now.
func stillGroundless(ctx context.Context, tx pgx.Tx, strike uuid.UUID) error {
	var grounded bool
	if err := tx.QueryRow(ctx, groundedSQL, strike).Scan(&grounded); err != nil {
		return fmt.Errorf("look for other evidence of strike %s: %w", strike, err)
	}
	if grounded {
		return refusal.New(call.Conflict, "the strike has evidence that no outage excuses")
	}
	return nil
}

// A failure of the service itself that came since the rest began would have begun one: the service keeps it.
const restsOfOursSQL = `
SELECT c.service_id
  FROM cooldowns c JOIN deliveries d ON d.id = c.started_by
 WHERE c.until > market_now() AND d.excused_by = $1 AND ($2::uuid IS NULL OR c.service_id = $2)
   AND NOT EXISTS (SELECT 1 FROM deliveries since
                    WHERE since.service_id = c.service_id AND since.recorded_at >= d.recorded_at AND since.outcome = 'failed' AND since.asked
                      AND since.party = 'service' AND since.origin IN ('external', 'unattributed'))
 ORDER BY c.service_id LIMIT 1000`

// endRests lets those services have work again that rest for a failure which an outage excuses. A failure that is only flagged opens no strike, so that
// no void would end its rest. Each service is looked at again when its row is locked.
func (r *Review) endRests(ctx context.Context, o outage.Outage) error {
	resting, err := restsOfOurs(ctx, r.db, o, nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, service := range resting {
		errs = append(errs, pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
			if _, err := r.catalog.Lock(ctx, tx, service); err != nil {
				return err
			}
			still, err := restsOfOurs(ctx, tx, o, &service)
			if err != nil || len(still) == 0 {
				return err
			}
			_, err = r.cooldown.End(ctx, tx, service)
			return err
		}))
	}
	return errors.Join(errs...)
}

func restsOfOurs(ctx context.Context, db postgres.DB, o outage.Outage, of *uuid.UUID) ([]uuid.UUID, error) {
	rows, err := db.Query(ctx, restsOfOursSQL, o.ID, of)
	if err != nil {
		return nil, fmt.Errorf("find cooldowns of outage %s: %w", o.ID, err)
	}
	resting, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("find cooldowns of outage %s: %w", o.ID, err)
	}
	return resting, nil
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
