package delivery

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/audit"
	"market/internal/catalog"
)

// An Order is what somebody wants done with a service: who, why, and on which revisions of it that rests; nil for any.
type Order struct {
	By        catalog.Author
	Reason    string
	Revisions []int64
}

// Relist puts a service back on the shelf. Where it was delisted or held, its strikes were looked at: they are archived, and its cooldown ends. What
// an admin had suspended keeps its strikes. A service that is on the shelf, or retired, is a refusal with Conflict.
func (r *Review) Relist(ctx context.Context, slug string, o Order) (catalog.Service, Decision, error) {
	return r.order(ctx, audit.Relist, catalog.CauseRelisting, slug, o, func(tx pgx.Tx, before subject) error {
		if before.State == catalog.Suspended {
			return nil
		}
		if _, err := r.strikes.Archive(ctx, tx, before.service); err != nil {
			return err
		}
		_, err := r.cooldown.End(ctx, tx, before.service)
		return err
	})
}

// Suspend takes a service off the shelf until it is relisted. Calls that are under way end as they would have. One that is off the shelf for its
// strikes, suspended already, or retired, is a refusal with Conflict.
func (r *Review) Suspend(ctx context.Context, slug string, o Order) (catalog.Service, Decision, error) {
	return r.order(ctx, audit.Suspend, catalog.CauseSuspension, slug, o, func(pgx.Tx, subject) error { return nil })
}

// order makes one decision about a service.
func (r *Review) order(ctx context.Context, action audit.Action, cause catalog.Cause, slug string, o Order, do func(tx pgx.Tx, before subject) error,
) (service catalog.Service, d Decision, err error) {
	if !mayReview(o.By) {
		return catalog.Service{}, Decision{}, fmt.Errorf("review: %s of service %s: %q decides nothing", action, slug, o.By.Actor)
	}
	err = pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if service, err = r.catalog.At(ctx, tx, slug, o.Revisions); err != nil {
			return err
		}
		before, err := r.look(ctx, tx, service.ID)
		if err != nil {
			return err
		}
		moved, err := r.catalog.Move(ctx, tx, service.ID, catalog.Change{Cause: cause, By: o.By, Reason: o.Reason})
		switch {
		case err != nil:
			return err
		case !moved:
			return service.WhyNot(cause)
		}
		if err := do(tx, before); err != nil {
			return err
		}
		if d, err = r.keep(ctx, tx, audit.Entry{Action: action, Subject: audit.Service(slug), Reason: o.Reason}, o.By, before, nil); err != nil {
			return err
		}
		service, err = r.catalog.Find(ctx, tx, slug)
		return err
	})
	if err != nil {
		return catalog.Service{}, Decision{}, wrapReview(action, err)
	}
	return service, d, nil
}
