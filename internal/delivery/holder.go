package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/catalog"
	"market/internal/notify"
	"market/internal/postgres"
	"market/internal/pulse"
	"market/internal/switches"
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
	db            *pgxpool.Pool
	rule          Holding
	catalog       catalog.Store
	notifications notify.Store
	switches      switches.Store
}

// NewHolder returns a holder by a rule.
func NewHolder(db *pgxpool.Pool, rule Holding) *Holder { return &Holder{db: db, rule: rule} }

// Run looks until ctx ends. tell is told what the operator is to know, and onError what went wrong.
func (h *Holder) Run(ctx context.Context, tell func(HeldNotice), onError func(error)) {
	for {
		wait := time.NewTimer(holdEvery*9/10 + rand.N(holdEvery/5)) //nolint:gosec // no secret
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		round, cancel := context.WithTimeout(ctx, holdTime)
		told, err := h.Once(round)
		cancel()
		for _, notice := range told {
			tell(notice)
		}
		if err != nil && ctx.Err() == nil {
			onError(fmt.Errorf("look for services to hold: %w", err))
		}
		pulse.Beat(ctx, holdEvery)
	}
}

// Once is one round: it looks at every service for sale, holds those that are to be held, and returns what the operator is to be told.
func (h *Holder) Once(ctx context.Context) ([]HeldNotice, error) {
	told, holdErr := h.holdAll(ctx)
	more, err := h.notices(ctx)
	return append(told, more...), errors.Join(holdErr, err)
}

// holdAll holds those that are to be held, or none of them where they are too many. Replicas that hold different services at the same moment may pass
// the ceiling by what the others hold just then; what it is for is hundreds.
//
// While strikes are suspended nobody is held, and what is said of those that would be too many stays as it is.
func (h *Holder) holdAll(ctx context.Context) ([]HeldNotice, error) {
	if suspended, err := h.switches.StrikesSuspended(ctx, h.db); err != nil || suspended {
		return nil, err
	}
	var found, candidates []heldFacts
	err := bounded(ctx, h.db, func(tx pgx.Tx) (err error) {
		found, err = h.facts(ctx, tx, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the facts about all services: %w", err)
	}
	for _, f := range found {
		if _, holds := h.rule.Holds(f.facts); holds {
			candidates = append(candidates, f)
		}
	}
	told, tooMany, err := h.ceiling(ctx, candidates)
	if err != nil || tooMany {
		return told, err
	}
	var errs []error
	for _, f := range candidates {
		if err := h.hold(ctx, f.service); err != nil {
			errs = append(errs, fmt.Errorf("hold service %s: %w", f.service, err))
		}
	}
	return told, errors.Join(errs...)
}

// hold takes one service off the shelf, by the facts as they are once nobody else changes it: it may have been held and put back since they were
// read, and is not to be held again for what an admin has seen.
func (h *Holder) hold(ctx context.Context, service uuid.UUID) error {
	return pgx.BeginFunc(ctx, h.db, func(tx pgx.Tx) error {
		if _, err := h.catalog.Lock(ctx, tx, service); err != nil {
			return err
		}
		if suspended, err := h.switches.StrikesSuspended(ctx, tx); err != nil || suspended {
			return err
		}
		if _, err := tx.Exec(ctx, boundedSQL); err != nil {
			return err
		}
		now, err := h.facts(ctx, tx, &service)
		if err != nil || len(now) == 0 {
			return err
		}
		reason, holds := h.rule.Holds(now[0].facts)
		if !holds {
			return nil
		}
		moved, err := h.catalog.Move(ctx, tx, service, catalog.Change{Cause: catalog.CauseReview, By: catalog.System, Reason: reason})
		if err != nil || !moved {
			return err
		}
		return tellHeld(ctx, tx, service, reason)
	})
}

// heldFacts are the facts about one service that is for sale.
type heldFacts struct {
	service uuid.UUID
	baseURL string
	facts   HoldingFacts
}

// The newest rows are cut off first, as in talliesSQL: scoreRows of all services together, as long as no service falls under scoreCallsMin. What went
// wrong while we had an outage of our own, also on another replica, is no fact about a service: what stands between us and all of them may have
// answered in their place. Nor is what was recorded while strikes were suspended: of one service no two deliveries that count are of one instant, because
// they wait for its row. It is looked for one by one, because all that were ever marked would be more than what is counted.
const (
	oursSQL = `
WITH ours AS MATERIALIZED (
	SELECT reaches_back_to AS since, coalesce(ended_at, 'infinity') AS until FROM outages WHERE coalesce(ended_at, 'infinity') > market_now() - $1::interval
)`

	paidOfSQL = `
		  FROM deliveries d
		 WHERE service_id = s.id AND NOT trial AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
		   AND recorded_at > greatest(market_now() - $1::interval, s.state_since)
		 ORDER BY trial, recorded_at DESC
		 LIMIT greatest($2, least($3, $4 / (SELECT greatest(1, count(*)) FROM services WHERE state = 'listed')))
	)`

	kindsSQL = `
	  FROM (
		SELECT *, asked AND party = 'service' AND reason = 'upstream_throttled' AS throttled, asked AND party = 'service' AND reason = 'upstream_too_large' AS too_large,
		       asked AND reason = 'rejected_by_service' AS rejected, asked AND party = 'service' AND reason = 'listing_broken' AS example
		  FROM paid
		 WHERE outcome = 'served' OR NOT EXISTS (SELECT 1 FROM ours WHERE paid.recorded_at BETWEEN ours.since AND ours.until)
		       AND (SELECT true FROM deliveries x WHERE x.suspended AND x.service_id = s.id AND x.recorded_at = paid.recorded_at LIMIT 1) IS NULL
	  ) p
 ) f`

	holdingSQL = oursSQL + `
SELECT s.id, s.base_url, f.*
  FROM services s
 CROSS JOIN LATERAL (
	WITH paid AS MATERIALIZED (
		SELECT recorded_at, outcome, party, payer, reason, asked` + paidOfSQL + `
	SELECT count(*) FILTER (WHERE asked),
	       count(*) FILTER (WHERE throttled), count(*) FILTER (WHERE too_large), count(*) FILTER (WHERE rejected),
	       count(DISTINCT payer) FILTER (WHERE throttled OR too_large), count(DISTINCT payer) FILTER (WHERE rejected),
	       count(*) FILTER (WHERE example), count(DISTINCT payer) FILTER (WHERE example),
	       max(recorded_at) FILTER (WHERE example), max(recorded_at) FILTER (WHERE outcome = 'served' AND party = 'service')` + kindsSQL + `
 WHERE s.state = 'listed' AND ($5::uuid IS NULL OR s.id = $5)`

	// Addresses are in no index. They are read of the same calls, of the few services alone whose other facts would hold them.
	holdingSpreadSQL = oursSQL + `
SELECT s.id, f.*
  FROM services s
 CROSS JOIN LATERAL (
	WITH paid AS MATERIALIZED (
		SELECT recorded_at, outcome, party, reason, asked, ` + networkSQL + ` AS network` + paidOfSQL + `
	SELECT count(DISTINCT network) FILTER (WHERE throttled OR too_large), count(DISTINCT network) FILTER (WHERE rejected),
	       count(DISTINCT network) FILTER (WHERE example)` + kindsSQL + `
 WHERE s.id = ANY($5)`
)

// facts reads what the rule looks at, of one service or of all that are for sale. The transaction is one that boundedSQL was said to.
func (h *Holder) facts(ctx context.Context, db postgres.DB, service *uuid.UUID) ([]heldFacts, error) {
	rows, err := db.Query(ctx, holdingSQL, h.rule.Window, scoreCallsMin, ScoreCalls, scoreRows, service)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f heldFacts, err error) {
		var example, served *time.Time
		err = row.Scan(&f.service, &f.baseURL, &f.facts.Asked, &f.facts.Throttled, &f.facts.TooLarge, &f.facts.Rejected, &f.facts.FlaggedPayers,
			&f.facts.RejectedPayers, &f.facts.ExampleFailures, &f.facts.ExamplePayers, &example, &served)
		for to, from := range map[*time.Time]*time.Time{&f.facts.LastExample: example, &f.facts.LastServed: served} {
			if from != nil {
				*to = from.UTC()
			}
		}
		return f, err
	})
	if err != nil {
		return nil, err
	}
	return found, h.spread(ctx, db, found)
}

// spread reads from how many networks the calls came, where that decides.
func (h *Holder) spread(ctx context.Context, db postgres.DB, found []heldFacts) error {
	of := map[uuid.UUID]*HoldingFacts{}
	for i := range found {
		if h.rule.wherever(found[i].facts) {
			of[found[i].service] = &found[i].facts
		}
	}
	if len(of) == 0 {
		return nil
	}
	rows, err := db.Query(ctx, holdingSpreadSQL, h.rule.Window, scoreCallsMin, ScoreCalls, scoreRows, slices.Collect(maps.Keys(of)))
	if err != nil {
		return err
	}
	var (
		service uuid.UUID
		s       Spread
	)
	_, err = pgx.ForEachRow(rows, []any{&service, &s.FlaggedNetworks, &s.RejectedNetworks, &s.ExampleNetworks}, func() error {
		of[service].Spread = s
		return nil
	})
	return err
}
