package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/payment"
	"market/internal/postgres"
	"market/internal/refusal"
)

// An admin ends the review of a call that a restore brought in doubt. What the chain can say it is asked first: whether the payment stands, which the sweeper
// finds out, and whether it was given back. What only people can know is whether the service had answered before the restore.
//
// The call is refunded, or it may be served after all. A refund is safe whatever was done before: its nonce follows from the payment, so one that was paid
// before the restore is found on the chain by the worker, which confirms it by its proof and sends no other. Served it may be only where the chain shows
// that it was not given back.

const whyReviewed = "we restored a backup, and what became of this call before that is not known: the money goes back"

// A reviewCase is how a call under review stood before and after a decision, as the audit keeps it.
type reviewCase struct {
	State  call.State `json:"state"`
	Review bool       `json:"review"`
}

const reviewsSQL = `
SELECT id FROM calls
 WHERE review AND state IN ('settling', 'unknown', 'rejected', 'expired', 'settled', 'asked')
   AND ($1 = '00000000-0000-0000-0000-000000000000'::uuid OR id < $1)
 ORDER BY id DESC LIMIT $2`

// InReview returns at most limit calls that are up for review, the newest first, and only those before the call given, where one is.
func InReview(ctx context.Context, db postgres.DB, before call.ID, limit int) ([]Record, error) {
	rows, err := db.Query(ctx, reviewsSQL, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list calls up for review: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("list calls up for review: %w", err)
	}
	return lookupAll(ctx, db, ids)
}

const endReviewSQL = `UPDATE calls SET review = false WHERE id = $1 AND review`

// RefundReviewed ends a review: the call has failed, by nobody's fault but ours, and its payment is given back. Its delivery, its refund, the end of its
// review and the entry of the audit are one transaction. One that is not up for review (any more), or not yet for a decision, is a refusal with Conflict.
func (p *Path) RefundReviewed(ctx context.Context, id call.ID, by catalog.Author, reason string) (Record, error) {
	c, rail, err := p.reviewed(ctx, id, call.Settled, call.Asked)
	if err != nil {
		return Record{}, err
	}
	d := c.delivery().end(call.Interrupted, whyReviewed)
	if c.Late {
		d = c.delivery().end(call.LateSettlement, whyReviewed)
	}
	d.Refund = c.refundOf(rail.Network.ChainID)
	d.also = func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, endReviewSQL, id)
		if err != nil {
			return fmt.Errorf("end review of call %s: %w", id, err)
		}
		if tag.RowsAffected() == 0 {
			return payment.ErrMoved
		}
		return reviewDecided(ctx, tx, c, audit.ReviewRefunded, call.FinalState(d.Outcome), by, reason)
	}
	if err := p.Recorder.Record(ctx, d); errors.Is(err, payment.ErrMoved) {
		return Record{}, p.reviewedAlready(ctx, id)
	} else if err != nil {
		return Record{}, err
	}
	return Lookup(ctx, p.DB, id)
}

// The time in which a retry of the payment is served begins now. Of two admins one finds the call under review.
const serveReviewedSQL = `
UPDATE calls SET review = false, state_since = market_now(), lease_until = market_now(), look_at = market_now(), looks = 0
 WHERE id = $1 AND review AND state = 'settled' AND NOT late AND lease_until <= market_now() AND payment_state IN ('mined', 'final')`

// ServeReviewed ends a review: the payment was never made good, so the call goes on where it stands, and is served if its caller sends the same payment again
// within the grace that every settled call has; else it is refunded. One of which the chain shows that it was given back is a refusal with Conflict.
func (p *Path) ServeReviewed(ctx context.Context, id call.ID, by catalog.Author, reason string) (Record, error) {
	c, rail, err := p.reviewed(ctx, id, call.Settled)
	if err != nil {
		return Record{}, err
	}
	if c.Late {
		return Record{}, refusal.New(call.Conflict, "the caller was told that this payment was refused: it can only be refunded")
	}
	back, err := p.givenBack(ctx, rail, c)
	if err != nil {
		return Record{}, refusal.New(call.NotReady, "the chain cannot be asked now whether the payment was given back; try again").WithCause(err)
	}
	if back {
		return Record{}, refusal.New(call.Conflict, "the chain shows that this payment was given back before the restore: it can only be refunded, which that transfer proves")
	}
	err = pgx.BeginFunc(ctx, p.DB, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, serveReviewedSQL, id)
		if err != nil {
			return fmt.Errorf("end review of call %s: %w", id, err)
		}
		if tag.RowsAffected() == 0 {
			return payment.ErrMoved
		}
		return reviewDecided(ctx, tx, c, audit.ReviewServed, c.State, by, reason)
	})
	if errors.Is(err, payment.ErrMoved) {
		return Record{}, p.reviewedAlready(ctx, id)
	}
	if err != nil {
		return Record{}, err
	}
	return Lookup(ctx, p.DB, id)
}

// givenBack says whether the nonce of the payment's refund is used, as of the newest block. What was paid before the restore is older.
func (p *Path) givenBack(ctx context.Context, rail Rail, c openCall) (bool, error) {
	owed := c.refundOf(rail.Network.ChainID)
	back, block, err := rail.Chain.UsedAt(ctx, c.Signed.Asset, c.Signed.To, owed.Nonce, 1)
	if err == nil && block < c.Proof.BlockNumber {
		err = errors.New("the node has not come to the block of the payment") // and so knows of no refund of it
	}
	return back, err
}

const openSQL = `SELECT ` + openColumns + ` FROM calls c WHERE c.id = $1`

// reviewed is a call that is up for review, in one of some states.
func (p *Path) reviewed(ctx context.Context, id call.ID, in ...call.State) (openCall, Rail, error) {
	rows, err := p.DB.Query(ctx, openSQL, id)
	if err != nil {
		return openCall{}, Rail{}, fmt.Errorf("find call %s: %w", id, err)
	}
	c, err := pgx.CollectExactlyOneRow(rows, scanOpen)
	if errors.Is(err, pgx.ErrNoRows) {
		return openCall{}, Rail{}, refusal.New(call.NotFound, "there is no such call")
	}
	if err != nil {
		return openCall{}, Rail{}, fmt.Errorf("find call %s: %w", id, err)
	}
	if !c.Review || c.State.Final() {
		return openCall{}, Rail{}, p.reviewedAlready(ctx, id)
	}
	rail, known := p.rail(c.Network)
	switch {
	case !known:
		return openCall{}, Rail{}, refusal.New(call.Conflict, "the call was paid on %s, which is not configured any more: nothing can be asked or paid there", c.Network)
	case !c.Free:
		return openCall{}, Rail{}, refusal.New(call.Conflict, "the call may still be under way: its lease has not run out; look again in a minute")
	case c.State == call.Asked && len(in) == 1:
		return openCall{}, Rail{}, refusal.New(call.Conflict, "the service was asked already: the call can only be refunded")
	case c.State != in[0] && c.State != in[len(in)-1]:
		return openCall{}, Rail{}, refusal.New(call.Conflict, "the chain is being asked whether the call was paid for at all: it is %s; look again when that is known", c.State)
	}
	return c, rail, nil
}

// reviewedAlready says who ended the review of a call, and that it is not up for one.
func (p *Path) reviewedAlready(ctx context.Context, id call.ID) error {
	made, decided, err := audit.Store{}.LatestOf(ctx, p.DB, audit.Call(id))
	if err != nil {
		return err
	}
	if decided {
		return refusal.New(call.Conflict, "the review of the call has ended: it was decided %s", doneBy(made))
	}
	return refusal.New(call.Conflict, "the call is not up for review")
}

func reviewDecided(ctx context.Context, tx pgx.Tx, c openCall, action audit.Action, to call.State, by catalog.Author, reason string) error {
	e := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: action, Subject: audit.Call(c.ID), Service: c.Service, Reason: reason}
	if err := e.Changed(reviewCase{c.State, true}, reviewCase{to, false}); err != nil {
		return err
	}
	_, err := audit.Store{}.Add(ctx, tx, e)
	return err
}
