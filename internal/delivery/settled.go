package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/postgres"
)

// A standing is what the database knew of a service at one instant.
type standing struct {
	listed  bool // and the endpoint is on its shelf
	cooling bool
	rest    time.Duration // of the cooldown, when cooling
	askedAt time.Time     // when the service may be asked: the instant itself
}

// state is where a call stands after a commit that found this.
func (s standing) state() call.State {
	if s.listed && !s.cooling {
		return call.Asked
	}
	return call.Settled
}

// standingSQL says whether the service $3 may be asked for the call $1. It is part of the statements that let it be asked: on a proof, on a word, or
// once a retry has taken the call over.
const standingSQL = `service AS (
	SELECT s.state = 'listed' AND e.retired_at IS NULL AS listed, coalesce(c.until > market_now(), false) AS cooling,
	       greatest(coalesce(c.until - market_now(), '0'), '0') AS rest, market_now() AS now
	  FROM services s JOIN endpoints e ON e.id = (SELECT endpoint_id FROM calls WHERE id = $1) LEFT JOIN cooldowns c ON c.service_id = s.id
	 WHERE s.id = $3
)`

// One statement writes the proof of the settlement and decides, on one snapshot, whether the service may be asked: between a look and a
// write of its own another replica could start a cooldown or delist. There is no second look before the service is asked.
const settledSQL = `
WITH ` + standingSQL + `
UPDATE calls
   SET transaction = $4, log_index = $5, block_number = $6, block_hash = $7,
       state = CASE WHEN service.listed AND NOT service.cooling THEN 'asked' ELSE 'settled' END,
       asked_at = CASE WHEN service.listed AND NOT service.cooling THEN service.now END,
       state_since = service.now, lease_until = service.now + $8::interval, payment_state = 'mined', look_at = service.now, looks = 0
  FROM service
 WHERE calls.id = $1 AND calls.owner = $2 AND calls.state IN ('settling', 'unknown')
RETURNING service.listed, service.cooling, service.rest, service.now`

// errTransferTaken is that the transfer which should prove a settlement paid for another call already.
var errTransferTaken = errors.New("the transfer paid for another call")

// settled is the second commit of a paid call. payment.ErrMoved: the call is not ours to settle any more.
func settled(ctx context.Context, db postgres.DB, id call.ID, owner, service uuid.UUID, p chain.Proof, lease time.Duration) (standing, error) {
	var s standing
	err := db.QueryRow(ctx, settledSQL, id, owner, service, p.Transaction[:], int64(p.LogIndex), int64(p.BlockNumber), p.BlockHash[:], lease). //nolint:gosec // range-checked by chain
																			Scan(&s.listed, &s.cooling, &s.rest, &s.askedAt)
	var constraint *pgconn.PgError
	switch {
	case errors.As(err, &constraint) && constraint.ConstraintName == "calls_transfer_unique":
		return standing{}, errTransferTaken
	case errors.Is(err, pgx.ErrNoRows):
		return standing{}, payment.ErrMoved
	case err != nil:
		return standing{}, fmt.Errorf("settle call %s: %w", id, err)
	}
	return s, nil
}
