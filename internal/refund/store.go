package refund

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/postgres"
)

// A State is where a refund stands.
type State string

const (
	StateOwed      State = "owed"
	StateSent      State = "sent"
	StateConfirmed State = "confirmed"
	StateParked    State = "parked"
	StateVoid      State = "void" // the chain took the payment back, or it never came: nothing is owed
)

// States returns every state.
func States() []State { return []State{StateOwed, StateSent, StateConfirmed, StateParked, StateVoid} }

// A Refund is one row.
type Refund struct {
	Owed
	State       State
	Attempts    int
	Why         string // of the last attempt, for people
	WaitsFor    string // the source that takes no work now; empty: none
	Waiting     bool   // for that source, and its time has not come
	Transaction common.Hash
	OwedAt      time.Time
	NextAt      time.Time // it is tried again
	ConfirmedAt time.Time
	retries     int // how often an admin had it tried again
}

// Store keeps refunds. Every method takes the caller's db.
type Store struct{}

// lease is how long a refund that was handed to a job is left alone by the one that hands them out.
const lease = 30 * time.Second

// One refund a call: a second one of the same call is the same row, and changes nothing.
const oweSQL = `
INSERT INTO refunds (call_id, network, asset, payer, amount, authorizer, nonce, payment_nonce, payment_transaction, next_at, unit_of)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, market_now() + $10::interval, $11)
ON CONFLICT (call_id) DO NOTHING`

// Owe writes that a refund is owed. The caller enqueues its job (Args) in the same transaction.
func (Store) Owe(ctx context.Context, db postgres.DB, o Owed) error {
	p := o.Payment
	_, err := db.Exec(ctx, oweSQL, p.Call, p.Network, p.Asset[:], p.Payer[:], p.Amount, p.Treasury[:], o.Nonce[:],
		p.Nonce[:], p.Transaction[:], lease, o.UnitOf)
	if err != nil {
		return fmt.Errorf("owe refund of call %s: %w", p.Call, err)
	}
	return nil
}

// findColumns are what scan reads, in its order.
const findColumns = `
SELECT call_id, network, asset, payer, amount, authorizer, nonce, payment_nonce, payment_transaction, state, attempts, why, transaction, owed_at, next_at,
       confirmed_at, unit_of, waits_for, waits_for <> '' AND next_at > market_now(), retries
  FROM refunds `

// ErrNone is that a call owes no refund.
var ErrNone = errors.New("no refund")

const findSQL = findColumns + `WHERE call_id = $1`

// Find returns the refund of a call, or ErrNone. The chain id is not kept with the row: the worker knows its networks.
func (Store) Find(ctx context.Context, db postgres.DB, id call.ID) (Refund, error) {
	rows, err := db.Query(ctx, findSQL, id)
	if err != nil {
		return Refund{}, fmt.Errorf("find refund of call %s: %w", id, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return Refund{}, ErrNone
	}
	if err != nil {
		return Refund{}, fmt.Errorf("find refund of call %s: %w", id, err)
	}
	return r, nil
}

const findAllSQL = findColumns + `WHERE call_id = ANY($1)`

// FindAll returns the refunds of some calls, by call. Calls that owe none are not in it.
func (Store) FindAll(ctx context.Context, db postgres.DB, ids []call.ID) (map[call.ID]Refund, error) {
	rows, err := db.Query(ctx, findAllSQL, ids)
	if err != nil {
		return nil, fmt.Errorf("find refunds of %d calls: %w", len(ids), err)
	}
	found, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("find refunds of %d calls: %w", len(ids), err)
	}
	all := make(map[call.ID]Refund, len(found))
	for _, r := range found {
		all[r.Payment.Call] = r
	}
	return all, nil
}

func scan(row pgx.CollectableRow) (r Refund, err error) {
	var (
		asset, payer, treasury, nonce, paymentNonce, payment, t []byte
		confirmed                                               *time.Time
	)
	err = row.Scan(&r.Payment.Call, &r.Payment.Network, &asset, &payer, &r.Payment.Amount, &treasury, &nonce, &paymentNonce, &payment, &r.State, &r.Attempts,
		&r.Why, &t, &r.OwedAt, &r.NextAt, &confirmed, &r.UnitOf, &r.WaitsFor, &r.Waiting, &r.retries)
	r.Payment.Asset, r.Payment.Payer, r.Payment.Treasury =
		common.BytesToAddress(asset), common.BytesToAddress(payer), common.BytesToAddress(treasury)
	r.Payment.Nonce, r.Payment.Transaction = common.BytesToHash(paymentNonce), common.BytesToHash(payment)
	r.Nonce, r.Transaction = common.BytesToHash(nonce), common.BytesToHash(t)
	if confirmed != nil {
		r.ConfirmedAt = *confirmed
	}
	return r, err
}

const takeDueSQL = `
UPDATE refunds SET next_at = market_now() + $2::interval, waits_for = ''
 WHERE call_id IN (
	SELECT call_id FROM refunds WHERE state NOT IN ('confirmed', 'void') AND next_at <= market_now()
	 ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING call_id`

// TakeDue returns refunds that are due, at most limit of them, and leases them to the caller.
func (Store) TakeDue(ctx context.Context, db postgres.DB, limit int) ([]call.ID, error) {
	rows, err := db.Query(ctx, takeDueSQL, limit, lease)
	if err != nil {
		return nil, fmt.Errorf("take due refunds: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowTo[call.ID])
	if err != nil {
		return nil, fmt.Errorf("take due refunds: %w", err)
	}
	return due, nil
}

// What a step found is older than an admin's order to try again that came meanwhile: it leaves that alone, and the next step finds the same, or better.
const deferSQL = `
UPDATE refunds SET state = coalesce(nullif($2, ''), state), next_at = market_now() + $3::interval, attempts = attempts + $4, why = $5,
       waits_for = ''
 WHERE call_id = $1 AND state NOT IN ('confirmed', 'void') AND retries = $6`

// later puts a refund off, as it was found, with the state it is in from now on, empty for the one that it has, and a word why. attempts counts only what
// went wrong.
func (Store) later(ctx context.Context, db postgres.DB, r Refund, state State, wait time.Duration, attempts int, why string) error {
	if _, err := db.Exec(ctx, deferSQL, r.Payment.Call, state, wait, attempts, why, r.retries); err != nil {
		return fmt.Errorf("put off refund of call %s: %w", r.Payment.Call, err)
	}
	return nil
}

// A refund is sent only after its payment was final, so one that may have left is never voided.
const voidSQL = `
UPDATE refunds SET state = 'void', why = $2
 WHERE call_id = $1 AND state IN ('owed', 'parked') AND NOT EXISTS (SELECT 1 FROM refund_signatures WHERE call_id = $1)`

// Void ends a refund of a payment that is lost, and says why it is. It does nothing where none is owed.
func (Store) Void(ctx context.Context, db postgres.DB, id call.ID, why string) error {
	if _, err := db.Exec(ctx, voidSQL, id, why); err != nil {
		return fmt.Errorf("void refund of call %s: %w", id, err)
	}
	return nil
}

const confirmSQL = `
UPDATE refunds
   SET state = 'confirmed', transaction = $2, log_index = $3, block_number = $4, confirmed_at = market_now(), why = '', waits_for = ''
 WHERE call_id = $1 AND state <> 'confirmed'`

func (Store) confirm(ctx context.Context, db postgres.DB, id call.ID, p chain.Proof) error {
	_, err := db.Exec(ctx, confirmSQL, id, p.Transaction[:], int64(p.LogIndex), int64(p.BlockNumber)) //nolint:gosec // range-checked by chain
	if err != nil {
		return fmt.Errorf("confirm refund of call %s: %w", id, err)
	}
	return nil
}
