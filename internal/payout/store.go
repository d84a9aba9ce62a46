package payout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/chain"
	"market/internal/money"
	"market/internal/postgres"
	"market/internal/source"
)

// Store keeps payouts. Every method takes the caller's db.
type Store struct{}

// lease is how long a payout that was handed to a job is left alone by the one that hands them out.
const lease = 2 * time.Minute

// ErrNone is that there is no such payout.
var ErrNone = errors.New("no such payout")

const columnsSQL = `
SELECT id, account_id, network, asset, treasury, number, amount, address, nonce, from_block, state, held, payout_stopped(account_id), why,
       waits_for, waits_for <> '' AND next_at > market_now(), attempts, made_at, made_by, signed_at IS NOT NULL, transaction, confirmed_at
  FROM payouts`

func scan(row pgx.CollectableRow) (p Payout, err error) {
	var (
		asset, treasury, address, nonce, transaction []byte
		from                                         int64
		confirmed                                    *time.Time
	)
	err = row.Scan(&p.ID, &p.Account, &p.Network, &asset, &treasury, &p.Number, &p.Amount, &address, &nonce, &from, &p.State, &p.Held, &p.Stopped, &p.Why,
		&p.WaitsFor, &p.Waiting, &p.Attempts, &p.MadeAt, &p.MadeBy, &p.Signed, &transaction, &confirmed)
	p.Asset, p.Treasury, p.Address = common.BytesToAddress(asset), common.BytesToAddress(treasury), common.BytesToAddress(address)
	p.Nonce, p.Transaction = common.BytesToHash(nonce), common.BytesToHash(transaction)
	p.FromBlock, p.MadeAt = uint64(from), p.MadeAt.UTC() //nolint:gosec // never negative, by its constraint
	if confirmed != nil {
		p.ConfirmedAt = confirmed.UTC()
	}
	return p, err
}

const findSQL = columnsSQL + ` WHERE id = $1`

// Find returns a payout, or ErrNone.
func (Store) Find(ctx context.Context, db postgres.DB, id uuid.UUID) (Payout, error) {
	return one(ctx, db, findSQL, id)
}

func one(ctx context.Context, db postgres.DB, sql string, args ...any) (Payout, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return Payout{}, fmt.Errorf("find payout: %w", err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return Payout{}, ErrNone
	}
	if err != nil {
		return Payout{}, fmt.Errorf("find payout: %w", err)
	}
	return p, nil
}

// Replicas race for what is due: who moves next_at hands the payout out, and nobody else does before the lease has run out. A job that died with its process
// leaves nothing but the lease, so this is also what finds what a dead worker left (B118): whatever its state, as long as it has not ended.
const takeDueSQL = `
UPDATE payouts SET next_at = market_now() + $2::interval, waits_for = ''
 WHERE id IN (
	SELECT id FROM payouts WHERE state NOT IN ('confirmed', 'cancelled') AND next_at <= market_now()
	 ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED)
RETURNING id`

// TakeDue returns payouts that are due, at most limit of them, and leases them to the caller.
func (Store) TakeDue(ctx context.Context, db postgres.DB, limit int) ([]uuid.UUID, error) {
	rows, err := db.Query(ctx, takeDueSQL, limit, lease)
	if err != nil {
		return nil, fmt.Errorf("take due payouts: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("take due payouts: %w", err)
	}
	return due, nil
}

// Who comes back late from a look takes nothing back: a payout that is signed is not owed again by it, only by the proof of its lapse (see lapsedSQL).
const deferSQL = `
UPDATE payouts
   SET state = CASE WHEN $2 = '' OR $2 = 'owed' AND signed_at IS NOT NULL THEN state WHEN $2 = 'sent' AND signed_at IS NULL THEN state ELSE $2 END,
       next_at = market_now() + $3::interval, attempts = attempts + $4, why = $5, waits_for = ''
 WHERE id = $1 AND state NOT IN ('confirmed', 'cancelled')`

// later puts a payout off, with the state it is in from now on, empty for the one that it has, and a word why. attempts counts only what went wrong.
func (Store) later(ctx context.Context, db postgres.DB, id uuid.UUID, state State, wait time.Duration, attempts int, why string) error {
	if _, err := db.Exec(ctx, deferSQL, id, state, wait, attempts, why); err != nil {
		return fmt.Errorf("put off payout %s: %w", id, err)
	}
	return nil
}

// The trigger payouts_posted has it in the books by the end of the transaction.
const confirmSQL = `
UPDATE payouts
   SET state = 'confirmed', transaction = $2, log_index = $3, block_number = $4, confirmed_at = market_now(), why = '', waits_for = ''
 WHERE id = $1 AND state NOT IN ('confirmed', 'cancelled')`

// confirm says whether it was not confirmed before.
func (Store) confirm(ctx context.Context, db postgres.DB, id uuid.UUID, p chain.Proof) (bool, error) {
	tag, err := db.Exec(ctx, confirmSQL, id, p.Transaction[:], int64(p.LogIndex), int64(p.BlockNumber)) //nolint:gosec // range-checked by chain
	if err != nil {
		return false, fmt.Errorf("confirm payout %s: %w", id, err)
	}
	return tag.RowsAffected() == 1, nil
}

// One that is tried again and again is parked again and again: it is told once.
const parkedIsNewsSQL = `UPDATE payouts SET parked_told = true WHERE id = $1 AND state = 'parked' AND NOT parked_told`

func (Store) parkedIsNews(ctx context.Context, db postgres.DB, id uuid.UUID) (bool, error) {
	tag, err := db.Exec(ctx, parkedIsNewsSQL, id)
	if err != nil {
		return false, fmt.Errorf("keep that it is told that payout %s is parked: %w", id, err)
	}
	return tag.RowsAffected() == 1, nil
}

// whyWaits is read by the provider whose money it is.
const whyWaits = "what sends payouts takes no work at the moment; this one is queued, and sent as soon as it does"

const waitForSQL = `
UPDATE payouts SET waits_for = $2, next_at = $3, why = $4 WHERE id = $1 AND state NOT IN ('confirmed', 'cancelled')`

// waitFor puts a payout off until a source takes work again. Its attempts stay as they are: nobody has tried.
func (Store) waitFor(ctx context.Context, db postgres.DB, id uuid.UUID, limit *source.LimitError) error {
	if _, err := db.Exec(ctx, waitForSQL, id, limit.Source, limit.Until, whyWaits); err != nil {
		return fmt.Errorf("put off payout %s until %s: %w", id, limit.Until.UTC().Format(time.RFC3339), err)
	}
	return nil
}

const resumeSQL = `
UPDATE payouts SET next_at = market_now()
 WHERE id IN (
	SELECT id FROM payouts
	 WHERE network = ANY($1) AND waits_for = ANY($2) AND state NOT IN ('confirmed', 'cancelled') AND next_at > market_now()
	   FOR UPDATE SKIP LOCKED)`

// Resume makes everything due on some networks that waits for one of some sources. It may be called again, and where nothing waits.
func (Store) Resume(ctx context.Context, db postgres.DB, networks, sources []string) error {
	if _, err := db.Exec(ctx, resumeSQL, networks, sources); err != nil {
		return fmt.Errorf("resume the payouts of %v: %w", networks, err)
	}
	return nil
}

const waitingSQL = `
SELECT count(*) FROM payouts
 WHERE network = ANY($1) AND NOT held AND (state = 'owed' OR waits_for <> '' AND state NOT IN ('confirmed', 'cancelled'))`

// Waiting counts the payouts of some networks that still need a unit.
func (Store) Waiting(ctx context.Context, db postgres.DB, networks []string) (n int64, err error) {
	if err := db.QueryRow(ctx, waitingSQL, networks).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the payouts that wait on %v: %w", networks, err)
	}
	return n, nil
}

// Parked are the payouts of one network that are not paid by themselves.
type Parked struct {
	Network string
	Count   int
	Oldest  time.Duration // since it was made
	Why     string        // of the most of them
}

// What was tried often counts too: nobody knows whether it ends by itself. What is held or stopped waits for somebody who knows of it.
const parkedSQL = `
SELECT network, count(*)::int, market_now() - min(made_at), mode() WITHIN GROUP (ORDER BY why)
  FROM payouts
 WHERE (state = 'parked' OR state NOT IN ('confirmed', 'cancelled') AND attempts >= $1) AND NOT held AND payout_stopped(account_id) = ''
 GROUP BY network ORDER BY network LIMIT 100`

// parkedAttempts is how often a payout is tried until it counts as one that does not get through by itself.
const parkedAttempts = 20

// Parked counts the payouts that are parked, or do not get through.
func (Store) Parked(ctx context.Context, db postgres.DB) ([]Parked, error) {
	rows, err := db.Query(ctx, parkedSQL, parkedAttempts)
	if err != nil {
		return nil, fmt.Errorf("count parked payouts: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Parked])
	if err != nil {
		return nil, fmt.Errorf("count parked payouts: %w", err)
	}
	return all, nil
}

const sentNoncesSQL = `
SELECT nonce, amount FROM payouts
 WHERE network = $1 AND asset = $2 AND treasury = $3 AND signed_at IS NOT NULL AND state NOT IN ('confirmed', 'cancelled') ORDER BY made_at LIMIT $4`

// A Sent is a payout that was shown to the chain and is not final.
type Sent struct {
	Nonce  common.Hash
	Amount money.Amount
}

// Sent returns the oldest payouts of a treasury that may have left it and still count as owed.
func (Store) Sent(ctx context.Context, db postgres.DB, network string, asset, treasury common.Address, limit int) ([]Sent, error) {
	rows, err := db.Query(ctx, sentNoncesSQL, network, asset[:], treasury[:], limit)
	if err != nil {
		return nil, fmt.Errorf("list payouts that were sent: %w", err)
	}
	sent, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Sent, err error) {
		var nonce []byte
		err = row.Scan(&nonce, &s.Amount)
		s.Nonce = common.BytesToHash(nonce)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("list payouts that were sent: %w", err)
	}
	return sent, nil
}
