package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/crash"
	"market/internal/payment"
	"market/internal/postgres"
)

const (
	// sweepMax is how many calls one round looks at.
	sweepMax = 200
	// lookMax is the longest pause between two looks at a call that stays unclear.
	lookMax = 15 * time.Second
)

// Replicas share the work: who moves look_at looks. A call whose lease runs belongs to the process that walks it and is left alone; the
// payment of a call that is asked or final is followed all the same, because the chain may take it back.
const takeLooksSQL = `
UPDATE calls c
   SET look_at = market_now() + least(power(2, least(c.looks, 10)), $2) * interval '1 second', looks = c.looks + 1
 WHERE c.id IN (
	SELECT id FROM calls
	 WHERE look_at <= market_now()
	   AND (payment_state IN ('sent', 'mined')
	        OR (state IN ('settling', 'unknown', 'rejected', 'expired', 'settled', 'asked') AND lease_until <= market_now()
	            AND (NOT review OR state NOT IN ('settled', 'asked') OR payment_state = 'lost')))
	 ORDER BY look_at LIMIT $1
	   FOR UPDATE SKIP LOCKED)
RETURNING ` + openColumns

func takeLooks(ctx context.Context, db postgres.DB) ([]openCall, error) {
	rows, err := db.Query(ctx, takeLooksSQL, sweepMax, lookMax.Seconds())
	if err != nil {
		return nil, fmt.Errorf("take calls to look at: %w", err)
	}
	calls, err := pgx.CollectRows(rows, scanOpen)
	if err != nil {
		return nil, fmt.Errorf("take calls to look at: %w", err)
	}
	return calls, nil
}

// The state and the lease stand in the condition: a retry that took the call over meanwhile goes on with it, and nothing is written here.
const foundSQL = `
UPDATE calls
   SET state = 'settled', late = (state = 'rejected'), review = $7, transaction = $3, log_index = $4, block_number = $5, block_hash = $6,
       payment_state = 'mined', state_since = market_now(), lease_until = market_now(), look_at = market_now(), looks = 0
 WHERE id = $1 AND state = $2 AND lease_until <= market_now()`

// found writes that the payment of an unclear call is on the chain. The grace in which a retry may still be served starts here.
func found(ctx context.Context, db postgres.DB, c openCall, p chain.Proof, review bool) error {
	crash.BeforeMove(c.State, call.Settled)
	tag, err := db.Exec(ctx, foundSQL, c.ID, c.State, p.Transaction[:], int64(p.LogIndex), int64(p.BlockNumber), p.BlockHash[:], review) //nolint:gosec // range-checked by chain
	var constraint *pgconn.PgError
	if errors.As(err, &constraint) && constraint.ConstraintName == "calls_transfer_unique" {
		return errTransferTaken
	}
	return moved(tag, err, c, call.Settled)
}

const turnSQL = `
UPDATE calls SET state = $3, state_since = market_now(), why = $4, look_at = market_now(), looks = 0
 WHERE id = $1 AND state = $2 AND lease_until <= market_now()`

// turn moves an unclear call to a state that the chain has proved.
func turn(ctx context.Context, db postgres.DB, c openCall, to call.State, why string) error {
	if !call.CanMove(c.State, to) {
		return fmt.Errorf("move call %s from %s to %s: not in the table", c.ID, c.State, to)
	}
	crash.BeforeMove(c.State, to)
	tag, err := db.Exec(ctx, turnSQL, c.ID, c.State, to, why)
	return moved(tag, err, c, to)
}

func moved(tag pgconn.CommandTag, err error, c openCall, to call.State) error {
	if err != nil {
		return fmt.Errorf("move call %s to %s: %w", c.ID, to, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("move call %s to %s: %w", c.ID, to, payment.ErrMoved)
	}
	crash.AfterMove(c.State, to)
	return nil
}

const (
	// The proof is written again: after a reorganisation the same transfer can stand in another block, or in another transaction, and a
	// refund waits for that one to be final.
	livesSQL = `
WITH moved AS (
	UPDATE calls
	   SET payment_state = $3, transaction = $4, log_index = $5, block_number = $6, block_hash = $7,
	       look_at = market_now() + $8::interval, looks = 0
	 WHERE id = $1 AND payment_state = $2
	RETURNING id
)
UPDATE refunds SET payment_transaction = $4 FROM moved WHERE call_id = moved.id AND payment_transaction <> $4`

	droppedSQL = `
UPDATE calls SET payment_state = $3, look_at = market_now(), looks = 0 WHERE id = $1 AND payment_state = $2`
)

// lives writes where a payment's transfer stands now, in its own life's state: mined or final.
func lives(ctx context.Context, db postgres.DB, c openCall, to string, p chain.Proof, wait time.Duration) error {
	_, err := db.Exec(ctx, livesSQL, c.ID, c.PaymentState, to, p.Transaction[:], int64(p.LogIndex), int64(p.BlockNumber), p.BlockHash[:], wait) //nolint:gosec // range-checked by chain
	if err != nil {
		return fmt.Errorf("write payment of call %s as %s: %w", c.ID, to, err)
	}
	return nil
}

// dropped writes that a payment is not on the chain any more: sent again, or lost. moved is false where somebody else wrote first.
func dropped(ctx context.Context, db postgres.DB, c openCall, to string) (moved bool, err error) {
	tag, err := db.Exec(ctx, droppedSQL, c.ID, c.PaymentState, to)
	if err != nil {
		return false, fmt.Errorf("write payment of call %s as %s: %w", c.ID, to, err)
	}
	return tag.RowsAffected() == 1, nil
}

// A refund that was being written while livesSQL waited for its call was not in sight of that statement; by now it is.
const finalSQL = `
WITH final AS (
	UPDATE calls SET payment_state = 'final' WHERE id = ANY($1) AND payment_state = 'mined' RETURNING id, transaction
)
UPDATE refunds SET payment_transaction = final.transaction
  FROM final WHERE call_id = final.id AND payment_transaction <> final.transaction`

// final writes that payments stand deep enough.
func final(ctx context.Context, db postgres.DB, ids []call.ID) error {
	if len(ids) == 0 {
		return nil
	}
	if _, err := db.Exec(ctx, finalSQL, ids); err != nil {
		return fmt.Errorf("write %d payments as final: %w", len(ids), err)
	}
	return nil
}
