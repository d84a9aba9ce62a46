package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/catalog"
	"market/internal/postgres"
)

const (
	// holdEvery is how often a replica looks for services that are to be held, give or take a tenth, so that replicas that start together do not look
	// together.
	holdEvery = time.Minute
	holdTime  = 30 * time.Second
)

// A Holder takes services off the shelf that Holding says are to be looked at first. Every replica may run one: of two that hold the same service one
// does, and the other finds it done.
type Holder struct {
	db      *pgxpool.Pool
	rule    Holding
	catalog catalog.Store
}

// NewHolder returns a holder by a rule.
func NewHolder(db *pgxpool.Pool, rule Holding) *Holder { return &Holder{db: db, rule: rule} }

// A HeldService is one that was just taken off the shelf.
type HeldService struct {
	ID     uuid.UUID
	Slug   string
	Reason string
}

// Run looks until ctx ends. onHeld hears of each service that was held, and onError of what went wrong.
func (h *Holder) Run(ctx context.Context, onHeld func(HeldService), onError func(error)) {
	for {
		wait := time.NewTimer(holdEvery*9/10 + rand.N(holdEvery/5)) //nolint:gosec // no secret
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		round, cancel := context.WithTimeout(ctx, holdTime)
		held, err := h.Once(round)
		cancel()
		for _, service := range held {
			onHeld(service)
		}
		if err != nil && ctx.Err() == nil {
			onError(fmt.Errorf("look for services to hold: %w", err))
		}
	}
}

// Once is one round: it looks at every service for sale, and returns those that it held.
func (h *Holder) Once(ctx context.Context) (held []HeldService, err error) {
	var found []heldFacts
	err = bounded(ctx, h.db, func(tx pgx.Tx) error {
		found, err = h.facts(ctx, tx, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, f := range found {
		if _, holds := h.rule.Holds(f.facts); !holds {
			continue
		}
		reason, err := h.hold(ctx, f)
		if err != nil {
			errs = append(errs, fmt.Errorf("hold service %s: %w", f.slug, err))
		}
		if reason != "" {
			held = append(held, HeldService{f.service, f.slug, reason})
		}
	}
	return held, errors.Join(errs...)
}

// hold takes one service off the shelf, by the facts as they are once nobody else changes it: it may have been held and put back since they were
// read, and is not to be held again for what an admin has seen. It returns the reason; empty where it is not held after all.
func (h *Holder) hold(ctx context.Context, f heldFacts) (reason string, err error) {
	err = pgx.BeginFunc(ctx, h.db, func(tx pgx.Tx) error {
		reason = ""
		if _, err := h.catalog.Lock(ctx, tx, f.service); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, boundedSQL); err != nil {
			return err
		}
		now, err := h.facts(ctx, tx, &f.service)
		if err != nil || len(now) == 0 {
			return err
		}
		why, holds := h.rule.Holds(now[0].facts)
		if !holds {
			return nil
		}
		moved, err := h.catalog.Move(ctx, tx, f.service, catalog.Change{Cause: catalog.CauseReview, By: catalog.System, Reason: why})
		if err == nil && moved {
			reason = why
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return reason, nil
}

// heldFacts are the facts about one service that is for sale.
type heldFacts struct {
	service uuid.UUID
	slug    string
	facts   HoldingFacts
}

// The newest rows are cut off first, as in talliesSQL: scoreRows of all services together, as long as no service falls under scoreCallsMin. What was
// excused as an outage of ours has another party than the reason has, and is no fact about a service.
const holdingSQL = `
SELECT s.id, s.slug, f.*
  FROM services s
 CROSS JOIN LATERAL (
	WITH paid AS MATERIALIZED (
		SELECT recorded_at, outcome, party, payer, reason, asked
		  FROM deliveries
		 WHERE service_id = s.id AND NOT trial AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
		   AND recorded_at > greatest(market_now() - $1::interval, s.state_since)
		 ORDER BY trial, recorded_at DESC
		 LIMIT greatest($2, least($3, $4 / (SELECT greatest(1, count(*)) FROM services WHERE state = 'listed')))
	)
	SELECT count(*) FILTER (WHERE asked),
	       count(*) FILTER (WHERE throttled), count(*) FILTER (WHERE too_large), count(*) FILTER (WHERE rejected),
	       count(DISTINCT payer) FILTER (WHERE throttled OR too_large), count(DISTINCT payer) FILTER (WHERE rejected),
	       count(*) FILTER (WHERE example), count(DISTINCT payer) FILTER (WHERE example),
	       max(recorded_at) FILTER (WHERE example), max(recorded_at) FILTER (WHERE outcome = 'served' AND party = 'service')
	  FROM (
		SELECT *, asked AND party = 'service' AND reason = 'upstream_throttled' AS throttled, asked AND party = 'service' AND reason = 'upstream_too_large' AS too_large,
		       asked AND reason = 'rejected_by_service' AS rejected, asked AND party = 'service' AND reason = 'listing_broken' AS example
		  FROM paid
	  ) p
 ) f
 WHERE s.state = 'listed' AND ($5::uuid IS NULL OR s.id = $5)`

// facts reads what the rule looks at, of one service or of all that are for sale. The transaction is one that boundedSQL was said to.
func (h *Holder) facts(ctx context.Context, db postgres.DB, service *uuid.UUID) ([]heldFacts, error) {
	rows, err := db.Query(ctx, holdingSQL, h.rule.Window, scoreCallsMin, ScoreCalls, scoreRows, service)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f heldFacts, err error) {
		var example, served *time.Time
		err = row.Scan(&f.service, &f.slug, &f.facts.Asked, &f.facts.Throttled, &f.facts.TooLarge, &f.facts.Rejected, &f.facts.FlaggedPayers,
			&f.facts.RejectedPayers, &f.facts.ExampleFailures, &f.facts.ExamplePayers, &example, &served)
		for to, from := range map[*time.Time]*time.Time{&f.facts.LastExample: example, &f.facts.LastServed: served} {
			if from != nil {
				*to = from.UTC()
			}
		}
		return f, err
	})
}
