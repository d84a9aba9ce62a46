package switches

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// Channel is that of the notifications that the schema's triggers send when a switch is set.
const Channel = "switches"

// allMax bounds a list of switches. There is one of a network, and networks are configured.
const allMax = 1_000

// Store keeps switches. Every method takes the caller's db, so that a switch shares the transaction of what it decides, or of its entry in the audit.
type Store struct{}

const columnsSQL = `kind, subject, is_on, reason, by, since`

func scan(row pgx.CollectableRow) (s Switch, err error) {
	err = row.Scan(&s.Kind, &s.Subject, &s.On, &s.Reason, &s.By, &s.Since)
	s.Since = s.Since.UTC()
	return s, err
}

const allSQL = `SELECT ` + columnsSQL + ` FROM switches ORDER BY kind, subject LIMIT $1`

// All returns every switch that was ever set.
func (Store) All(ctx context.Context, db postgres.DB) ([]Switch, error) {
	rows, err := db.Query(ctx, allSQL, allMax)
	if err != nil {
		return nil, fmt.Errorf("read switches: %w", err)
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read switches: %w", err)
	}
	return all, nil
}

const lockSQL = `SELECT ` + columnsSQL + ` FROM switches WHERE kind = $1 AND subject = $2 FOR UPDATE`

// Lock returns how a switch stands, and keeps others from setting it until the transaction ends, where it was ever set.
func (Store) Lock(ctx context.Context, tx pgx.Tx, of Name) (Switch, error) {
	rows, err := tx.Query(ctx, lockSQL, of.Kind, of.Subject)
	if err != nil {
		return Switch{}, fmt.Errorf("read switch %s: %w", of, err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return Switch{Name: of}, nil
	}
	if err != nil {
		return Switch{}, fmt.Errorf("read switch %s: %w", of, err)
	}
	return s, nil
}

// One statement: of several admins who set it the same way at once one does, whichever replica they ask, and also where it has no row that could be
// locked. What was never set is off.
const setSQL = `
INSERT INTO switches AS s (kind, subject, is_on, reason, by)
SELECT $1, $2, $3::boolean, $4, $5 WHERE $3 OR EXISTS (SELECT 1 FROM switches WHERE kind = $1 AND subject = $2)
ON CONFLICT (kind, subject) DO UPDATE
   SET is_on = excluded.is_on, reason = excluded.reason, by = excluded.by, since = market_now()
 WHERE s.is_on <> excluded.is_on
RETURNING ` + columnsSQL

// Set sets a switch, and returns how it stands then. False: it stood so already, and is as it was.
func (Store) Set(ctx context.Context, tx pgx.Tx, want Switch) (set Switch, changed bool, err error) {
	rows, err := tx.Query(ctx, setSQL, want.Kind, want.Subject, want.On, want.Reason, want.By)
	if err != nil {
		return Switch{}, false, fmt.Errorf("set switch %s: %w", want.Name, err)
	}
	set, err = pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return Switch{}, false, nil
	}
	if err != nil {
		return Switch{}, false, fmt.Errorf("set switch %s: %w", want.Name, err)
	}
	return set, true, nil
}

const suspendedSQL = `SELECT EXISTS (SELECT 1 FROM switches WHERE kind = 'suspend_strikes' AND is_on)`

// StrikesSuspended says whether failures mean nothing for services at the moment.
func (Store) StrikesSuspended(ctx context.Context, db postgres.DB) (suspended bool, err error) {
	if err := db.QueryRow(ctx, suspendedSQL).Scan(&suspended); err != nil {
		return false, fmt.Errorf("read whether strikes are suspended: %w", err)
	}
	return suspended, nil
}
