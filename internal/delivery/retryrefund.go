package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/refund"
	"market/internal/refusal"
)

// A refundCase is how a refund stood before and after a decision, as the audit keeps it.
type refundCase struct {
	State  refund.State `json:"state"`
	Why    string       `json:"why"`
	NextAt time.Time    `json:"next_at"`
}

// RetryRefund has a parked refund tried again now, and keeps in the same transaction who said so and why. One that is not parked is a refusal with
// Conflict, which says who was there first, where somebody was.
func RetryRefund(ctx context.Context, db *pgxpool.Pool, id call.ID, by catalog.Author, reason string) (retried refund.Refund, err error) {
	var store refund.Store
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		before, err := store.Find(ctx, tx, id)
		if errors.Is(err, refund.ErrNone) {
			return refusal.New(call.NotFound, "no refund is owed of such a call")
		}
		if err != nil {
			return err
		}
		first, err := store.Retry(ctx, tx, id)
		if err != nil {
			return err
		}
		if retried, err = store.Find(ctx, tx, id); err != nil { // as whoever was first has left it
			return err
		}
		if !first {
			return retriedAlready(ctx, tx, retried)
		}
		entry := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: audit.RefundRetried, Subject: audit.Refund(id), Reason: reason}
		if err := entry.Changed(refundCaseOf(before), refundCaseOf(retried)); err != nil {
			return err
		}
		_, err = audit.Store{}.Add(ctx, tx, entry)
		return err
	})
	if _, no := errors.AsType[*refusal.Error](err); err != nil && !no {
		err = fmt.Errorf("retry refund of call %s: %w", id, err)
	}
	if err != nil {
		return refund.Refund{}, err
	}
	return retried, nil
}

func refundCaseOf(r refund.Refund) refundCase {
	return refundCase{State: r.State, Why: r.Why, NextAt: r.NextAt}
}

// retriedAlready says that a refund is not parked, and who decided last about it, where somebody has.
func retriedAlready(ctx context.Context, tx pgx.Tx, r refund.Refund) error {
	made, decided, err := audit.Store{}.LatestOf(ctx, tx, audit.Refund(r.Payment.Call))
	if err != nil {
		return err
	}
	if decided {
		return refusal.New(call.Conflict, "the refund is not parked, it is %s; it was decided %s", r.State, doneBy(made))
	}
	return refusal.New(call.Conflict, "the refund is not parked, it is %s", r.State)
}
