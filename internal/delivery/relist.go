package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/refusal"
)

// An Order is what somebody wants done with a service: who, why, and on which revisions of it that rests; nil for any. StateSince is the moment of the
// change of its state that they saw last; zero for any.
type Order struct {
	By         catalog.Author
	Reason     string
	Revisions  []int64
	StateSince time.Time
}

// Relist puts a service back on the shelf. Where it was delisted or held, its strikes were looked at: they are archived, and its cooldown ends. What
// an admin had suspended keeps its strikes. A service that is on the shelf, or retired, is a refusal with Conflict.
func (r *Review) Relist(ctx context.Context, slug string, o Order) (catalog.Service, Decision, error) {
	archived := 0
	service, d, err := r.order(ctx, audit.Relist, slug, o, func(tx pgx.Tx, service *catalog.Service, before subject) (err error) {
		if err := r.move(ctx, tx, service, catalog.CauseRelisting, o); err != nil || before.State == catalog.Suspended {
			return err
		}
		if archived, err = r.strikes.Archive(ctx, tx, before.service); err != nil {
			return err
		}
		_, err = r.cooldown.End(ctx, tx, before.service)
		return err
	})
	d.Archived = archived
	return service, d, err
}

// Suspend takes a service off the shelf until it is relisted. Calls that are under way end as they would have. One that is off the shelf for its
// strikes, suspended already, or retired, is a refusal with Conflict.
func (r *Review) Suspend(ctx context.Context, slug string, o Order) (catalog.Service, Decision, error) {
	return r.order(ctx, audit.Suspend, slug, o, func(tx pgx.Tx, service *catalog.Service, _ subject) error {
		return r.move(ctx, tx, service, catalog.CauseSuspension, o)
	})
}

// UpholdService answers what the provider says about a service, and leaves the service as it is: no other decision answers an appeal about one that is
// on the shelf, is suspended, or is held by what was measured. Where none waits, that is a refusal with Conflict.
func (r *Review) UpholdService(ctx context.Context, slug string, o Order) (catalog.Service, Decision, error) {
	return r.order(ctx, audit.Uphold, slug, o, func(tx pgx.Tx, service *catalog.Service, _ subject) error {
		waiting, err := countWaiting(ctx, tx, service, true)
		if err != nil || waiting > 0 {
			return err
		}
		return r.nothingToAnswer(ctx, tx, slug)
	})
}

// nothingToAnswer refuses an answer to no appeal, and says who was there first.
func (r *Review) nothingToAnswer(ctx context.Context, tx pgx.Tx, slug string) error {
	made, decided, err := r.audit.LatestOf(ctx, tx, audit.Service(slug))
	if err != nil {
		return err
	}
	const none = "no appeal about the service itself waits for an answer"
	if decided {
		return refusal.New(call.Conflict, none+". The last decision about it was %q, %s", made.Action, doneBy(made))
	}
	return refusal.New(call.Conflict, none)
}

// move changes the state of a service whose row is locked, or says why not.
func (r *Review) move(ctx context.Context, tx pgx.Tx, service *catalog.Service, cause catalog.Cause, o Order) error {
	moved, err := r.catalog.Move(ctx, tx, service.ID, catalog.Change{Cause: cause, By: o.By, Reason: o.Reason})
	if err == nil && !moved {
		return service.WhyNot(cause)
	}
	return err
}

// order makes one decision about a service. One that rests on a state that has passed is refused: it would settle strikes that nobody looked at.
func (r *Review) order(ctx context.Context, action audit.Action, slug string, o Order,
	do func(tx pgx.Tx, service *catalog.Service, before subject) error,
) (service catalog.Service, d Decision, err error) {
	if !mayReview(o.By) {
		return catalog.Service{}, Decision{}, fmt.Errorf("review: %s of service %s: %q decides nothing", action, slug, o.By.Actor)
	}
	err = pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		if service, err = r.catalog.At(ctx, tx, slug, o.Revisions); err != nil {
			return err
		}
		if !o.StateSince.IsZero() && !o.StateSince.Equal(service.StateSince) {
			return service.Passed()
		}
		before, err := r.look(ctx, tx, service.ID)
		if err != nil {
			return err
		}
		if err := do(tx, &service, before); err != nil {
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
