package payout

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

var (
	// ErrSigned is that a payout may have left, so it can not be cancelled any more.
	ErrSigned = errors.New("it is signed, and may have left")
	// ErrEnded is that nothing is done for a payout any more.
	ErrEnded = errors.New("it has ended")
	// ErrHeld is that a payout is held already, or is not.
	ErrHeld = errors.New("it is so already")
)

// Each of these states in its own row what it expects, so of an admin and a worker that come at once one is first: a worker that signs has locked the row, and
// what it wrote is seen here when it has committed (B119).
const (
	holdSQL    = `UPDATE payouts SET held = true, why = 'held by the operator' WHERE id = $1 AND NOT held AND state NOT IN ('confirmed', 'cancelled')`
	releaseSQL = `UPDATE payouts SET held = false, next_at = market_now(), why = '' WHERE id = $1 AND held AND state NOT IN ('confirmed', 'cancelled')`
	retrySQL   = `UPDATE payouts SET next_at = market_now(), attempts = 0, waits_for = '' WHERE id = $1 AND state NOT IN ('confirmed', 'cancelled')`
	cancelSQL  = `UPDATE payouts SET state = 'cancelled', why = 'cancelled by the operator' WHERE id = $1 AND signed_at IS NULL AND state IN ('owed', 'parked')`
)

// Hold keeps a payout from being signed and sent. What was sent before may still arrive. ErrHeld, ErrEnded, ErrNone: nothing was changed.
func (s Store) Hold(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	return s.decide(ctx, tx, holdSQL, id, ErrHeld)
}

// Release lets a payout go on that is held.
func (s Store) Release(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	return s.decide(ctx, tx, releaseSQL, id, ErrHeld)
}

// Retry has a payout looked at now.
func (s Store) Retry(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	return s.decide(ctx, tx, retrySQL, id, ErrEnded)
}

// Cancel ends a payout of which nothing was signed; its postings are there for the next one. ErrSigned: it may have left.
func (s Store) Cancel(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	return s.decide(ctx, tx, cancelSQL, id, ErrSigned)
}

func (s Store) decide(ctx context.Context, db postgres.DB, sql string, id uuid.UUID, otherwise error) error {
	tag, err := db.Exec(ctx, sql, id)
	if err != nil {
		return fmt.Errorf("decide on payout %s: %w", id, err)
	}
	if tag.RowsAffected() == 1 {
		return nil
	}
	p, err := s.Find(ctx, db, id)
	switch {
	case err != nil:
		return err
	case p.Ended():
		return ErrEnded
	}
	return otherwise
}
