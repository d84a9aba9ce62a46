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
			said, err := decidedAlready(ctx, tx, audit.Refund(id))
			if err != nil {
				return err
			}
			return refusal.New(call.Conflict, "the refund is not parked, it is %s%s", retried.State, said)
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

// decidedAlready says who decided last about something, and when and why; empty where nobody has.
func decidedAlready(ctx context.Context, tx pgx.Tx, of audit.Subject) (string, error) {
	latest, err := audit.Store{}.Latest(ctx, tx, of.Kind, []string{of.Name})
	if err != nil {
		return "", err
	}
	made, decided := latest[of.Name]
	if !decided {
		return "", nil
	}
	return "; it was decided " + doneBy(made), nil
}
