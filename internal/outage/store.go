package outage

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// An Outage is one of our own: of a replica, or of the fleet.
type Outage struct {
	ID      uuid.UUID
	Replica uuid.UUID // zero: the fleet
	State
	Failing Failing // when it began
	Settled bool    // everything that it excuses was found
}

// Subject is whose outage it is, for people.
func (o Outage) Subject() string { return Subject(o.Replica) }

// Subject is whose an outage would be, for people: that of a replica, or with the zero id that of the fleet.
func Subject(replica uuid.UUID) string {
	if replica == (uuid.UUID{}) {
		return "fleet"
	}
	return "replica " + replica.String()
}

// Store keeps outages, one row each.
type Store struct{}

const columnsSQL = `id, replica, cause, began_at, reaches_back_to, held_at, ended_at, asked, failed, providers, settled_at IS NOT NULL`

func collect(rows pgx.Rows, err error) ([]Outage, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o Outage, err error) {
		var (
			replica *uuid.UUID
			ended   *time.Time
		)
		err = row.Scan(&o.ID, &replica, &o.Cause, &o.Began, &o.Reaches, &o.Held, &ended, &o.Failing.Asked, &o.Failing.Failed, &o.Failing.Providers, &o.Settled)
		if replica != nil {
			o.Replica = *replica
		}
		if ended != nil {
			o.Ended = ended.UTC()
		}
		for _, at := range []*time.Time{&o.Began, &o.Reaches, &o.Held} {
			*at = at.UTC()
		}
		return o, err
	})
}

const (
	watchedSQL = `
SELECT ` + columnsSQL + `
  FROM outages
 WHERE ended_at IS NULL
    OR id = (SELECT id FROM outages WHERE replica IS NULL ORDER BY began_at DESC, id DESC LIMIT 1)
    OR id = (SELECT id FROM outages WHERE replica = $1 ORDER BY began_at DESC, id DESC LIMIT 1)
 ORDER BY began_at, id
 LIMIT 1000`

	lockedSQL = `
SELECT id FROM outages
 WHERE ended_at IS NULL
    OR id = (SELECT id FROM outages WHERE replica IS NULL ORDER BY began_at DESC, id DESC LIMIT 1)
    OR id = (SELECT id FROM outages WHERE replica = $1 ORDER BY began_at DESC, id DESC LIMIT 1)
 ORDER BY id
   FOR NO KEY UPDATE`
)

// Watched returns the outages that hold, and the last ones of a replica and of the fleet, in the order of their beginnings.
func (Store) Watched(ctx context.Context, db postgres.DB, replica uuid.UUID) ([]Outage, error) {
	watched, err := collect(db.Query(ctx, watchedSQL, replica))
	if err != nil {
		return nil, fmt.Errorf("read outages: %w", err)
	}
	return watched, nil
}

// Lock makes the transaction the only one that takes the outages further which Watched returns. It is a statement of its own, so that what is read
// then is what the one before has left.
func (Store) Lock(ctx context.Context, tx pgx.Tx, replica uuid.UUID) error {
	if _, err := tx.Exec(ctx, lockedSQL, replica); err != nil {
		return fmt.Errorf("lock outages: %w", err)
	}
	return nil
}

// Two that see one outage make one row: the second waits for the first, and then finds it.
const (
	beginSQL = `
INSERT INTO outages (id, replica, cause, began_at, reaches_back_to, held_at, asked, failed, providers)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (coalesce(replica, '00000000-0000-0000-0000-000000000000')) WHERE ended_at IS NULL DO NOTHING`

	openSQL = `
SELECT ` + columnsSQL + ` FROM outages WHERE ended_at IS NULL AND replica IS NOT DISTINCT FROM $1`
)

// Begin keeps an outage that has begun, and returns the one that holds then: another one where somebody was first.
func (Store) Begin(ctx context.Context, db postgres.DB, o Outage) (Outage, error) {
	_, err := db.Exec(ctx, beginSQL, uuid.Must(uuid.NewV7()), nullable(o.Replica), o.Cause, o.Began, o.Reaches, o.Held,
		o.Failing.Asked, o.Failing.Failed, o.Failing.Providers)
	if err != nil {
		return Outage{}, fmt.Errorf("begin outage of %s: %w", o.Subject(), err)
	}
	open, err := collect(db.Query(ctx, openSQL, nullable(o.Replica)))
	if err != nil || len(open) != 1 {
		return Outage{}, fmt.Errorf("begin outage of %s: %d hold: %w", o.Subject(), len(open), err)
	}
	return open[0], nil
}

const keepSQL = `UPDATE outages SET cause = $2, held_at = $3, ended_at = $4 WHERE id = $1`

// Keep writes where an outage stands now. It was locked before.
func (Store) Keep(ctx context.Context, db postgres.DB, o Outage) error {
	var ended *time.Time
	if !o.Ended.IsZero() {
		ended = &o.Ended
	}
	if _, err := db.Exec(ctx, keepSQL, o.ID, o.Cause, o.Held, ended); err != nil {
		return fmt.Errorf("keep outage %s: %w", o.ID, err)
	}
	return nil
}

const unsettledSQL = `SELECT ` + columnsSQL + ` FROM outages WHERE settled_at IS NULL ORDER BY began_at, id LIMIT 1000`

// Unsettled returns the outages of which not everything was found yet that they excuse, the first first.
func (Store) Unsettled(ctx context.Context, db postgres.DB) ([]Outage, error) {
	unsettled, err := collect(db.Query(ctx, unsettledSQL))
	if err != nil {
		return nil, fmt.Errorf("read unsettled outages: %w", err)
	}
	return unsettled, nil
}

const settleSQL = `UPDATE outages SET settled_at = market_now() WHERE id = $1 AND ended_at <= market_now() - $2::interval`

// Settle says that everything was found which an outage excuses that ended so long ago; nothing changes while it did not.
func (Store) Settle(ctx context.Context, db postgres.DB, id uuid.UUID, after time.Duration) error {
	if _, err := db.Exec(ctx, settleSQL, id, after); err != nil {
		return fmt.Errorf("settle outage %s: %w", id, err)
	}
	return nil
}

const listSQL = `
SELECT ` + columnsSQL + ` FROM outages
 WHERE $1::uuid IS NULL OR (began_at, id) < (SELECT began_at, id FROM outages WHERE id = $1)
 ORDER BY began_at DESC, id DESC LIMIT $2`

// List returns outages, the newest first: those before a certain one, or from the newest on where that is the zero id.
func (Store) List(ctx context.Context, db postgres.DB, before uuid.UUID, limit int) ([]Outage, error) {
	all, err := collect(db.Query(ctx, listSQL, nullable(before), limit))
	if err != nil {
		return nil, fmt.Errorf("list outages: %w", err)
	}
	return all, nil
}

func nullable(id uuid.UUID) *uuid.UUID {
	if id == (uuid.UUID{}) {
		return nil
	}
	return &id
}
