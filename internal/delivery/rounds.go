package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/plan"
	"market/internal/postgres"
	"market/internal/upstream"
)

// Rounds say how the shelf is walked to find services that have died: nobody buys them, so no call would tell. A probe is never a strike; whoever is
// silent for long is held for a review, which an admin ends.
type Rounds struct {
	Every  time.Duration // a service is asked, where nobody else asks
	Plans  plan.Table    // say it instead for services of accounts
	Checks int           // in a row without an answer
	After  time.Duration // and since so long, so that it is held
	// Tick is how often the rounds are gone. Whose turn comes within half a tick is asked now: a round begins a little after its tick, once more and once less,
	// and who was asked late by it would otherwise wait for one tick more than its plan says.
	Tick time.Duration
}

// usualRounds hold a service that has been dead for a week.
var usualRounds = Rounds{Every: time.Hour, Checks: 100, After: 7 * 24 * time.Hour, Tick: walkEvery}

// rounds are the usual ones, as often as the plans say.
func (p *Path) rounds() Rounds {
	r := usualRounds
	r.Every, r.Plans = cmp.Or(p.Plans.Unowned.ProbeEvery, r.Every), p.Plans.Table
	return r
}

// A silence is how long a service has not answered its probe.
type silence struct {
	checks int
	since  time.Time
	lasts  time.Duration // on the shelf: what it did before it was put there is settled
}

// hold says whether a silence takes a service off the shelf. Both count: after a long stop of our own the first check that fails proves little.
func (r Rounds) hold(s silence) bool { return s.checks >= r.Checks && s.lasts >= r.After }

const (
	walkEvery  = time.Minute
	walkMax    = 100 // services that one process asks in a round
	walkAtOnce = 10
	walkTime   = 50 * time.Second
)

// errFull says that a promise of the plans may not be kept, and what helps.
var errFull = fmt.Errorf("it was the turn of %d services or more, and one process asks no more in a round: some are asked later than their plans say, until another "+
	"process helps", walkMax)

// Walk goes the rounds until ctx ends. Every replica does, and each service is asked by one of them.
func (p *Path) Walk(ctx context.Context) { Every(ctx, walkEvery, p.round) }

// round goes one of the rounds.
func (p *Path) round(ctx context.Context) {
	round, cancel := context.WithTimeout(ctx, walkTime)
	defer cancel()
	err := p.rounds().walk(round, p.DB, p.Catalog.Current(), p.Prober.Live)
	if errors.Is(err, errFull) && p.OnFullRound != nil {
		p.OnFullRound()
	}
	if err != nil && ctx.Err() == nil {
		p.OnError(fmt.Errorf("go the rounds: %w", err))
	}
}

// walk asks the services whose turn it is. The error is errFull, among others, where there may be more of them.
func (r Rounds) walk(ctx context.Context, db postgres.DB, shelf *catalog.Snapshot, live func(context.Context, *catalog.Service) (upstream.Verdict, error)) error {
	turn, err := r.take(ctx, db)
	if err != nil {
		return err
	}
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		errs   []error
		places = make(chan struct{}, walkAtOnce)
	)
	if len(turn) == walkMax {
		errs = append(errs, errFull)
	}
	for _, id := range turn {
		service, known := shelf.Service(id)
		if !known || !service.State.Sells() || service.Broken != "" {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			verdict, err := live(ctx, service)
			// What keeps us from looking is no silence of the service.
			if err != nil || verdict.Reason == call.EgressDown || verdict.Reason == call.LocalError {
				return
			}
			if err := r.keep(ctx, db, service, verdict); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// One statement: of several replicas that see that it is a service's turn, one gets to ask it. How often that is says the plan of its owner ($3, $4); one
// that is not among them is the first. Whoever waits for a row that another replica has taken finds it looked at less than any plan's interval ago ($5, which
// is shorter by the half tick that a turn may come early, $6). Those come first who are overdue for longest, whatever their interval.
const dueSQL = `
INSERT INTO service_probes (service_id, checked_at)
SELECT due.id, market_now()
  FROM (SELECT s.id, coalesce(p.checked_at, s.created_at)
             + CASE WHEN s.owner_id IS NULL OR cardinality($3::text[]) = 0 THEN $1::interval ELSE coalesce(l.every, ($4::interval[])[1]) END AS at
          FROM services s
          LEFT JOIN service_probes p ON p.service_id = s.id
          LEFT JOIN accounts a ON a.id = s.owner_id
          LEFT JOIN unnest($3::text[], $4::interval[]) l (name, every) ON l.name = a.plan
         WHERE s.state = 'listed') due
 WHERE due.at <= market_now() + $6::interval
 ORDER BY due.at, due.id LIMIT $2
ON CONFLICT (service_id) DO UPDATE SET checked_at = excluded.checked_at
 WHERE service_probes.checked_at <= market_now() - $5::interval
RETURNING service_id`

func (r Rounds) take(ctx context.Context, db postgres.DB) ([]uuid.UUID, error) {
	every, shortest := make([]time.Duration, 0, len(r.Plans)), r.Every
	for _, p := range r.Plans {
		every, shortest = append(every, p.ProbeEvery), min(shortest, p.ProbeEvery)
	}
	early := r.Tick / 2
	rows, err := db.Query(ctx, dueSQL, r.Every, walkMax, r.Plans.Names(), every, shortest-early, early)
	if err != nil {
		return nil, fmt.Errorf("take services to ask: %w", err)
	}
	turn, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("take services to ask: %w", err)
	}
	return turn, nil
}

// A check that is not answered while strikes are suspended is not counted, and the time that counts begins when they are not any more.
const keepVerdictSQL = `
WITH suspension AS MATERIALIZED (
	SELECT coalesce(bool_or(is_on), false) AS holds, max(since) AS since FROM switches WHERE kind = 'suspend_strikes'
)
UPDATE service_probes p
   SET answered_at = CASE WHEN $3 THEN market_now() ELSE p.answered_at END,
       unanswered = CASE WHEN $3 THEN 0 ELSE CASE WHEN p.probe_id = $2 THEN p.unanswered ELSE 0 END + CASE WHEN suspension.holds THEN 0 ELSE 1 END END,
       unanswered_since = CASE WHEN $3 THEN NULL WHEN p.probe_id = $2 THEN coalesce(p.unanswered_since, market_now()) ELSE market_now() END,
       probe_id = $2
  FROM services s CROSS JOIN suspension
 WHERE p.service_id = $1 AND s.id = p.service_id
RETURNING p.unanswered, p.unanswered_since,
          CASE WHEN suspension.holds THEN interval '0' ELSE market_now() - greatest(p.unanswered_since, s.state_since, suspension.since) END`

// keep writes down what a service answered, and holds it where it has been silent for too long.
func (r Rounds) keep(ctx context.Context, db postgres.DB, service *catalog.Service, v upstream.Verdict) error {
	var (
		s     silence
		since *time.Time
		lasts *time.Duration
	)
	if err := db.QueryRow(ctx, keepVerdictSQL, service.ID, service.ProbeID(), v.Live).Scan(&s.checks, &since, &lasts); err != nil {
		return fmt.Errorf("keep what service %s answered: %w", service.Slug, err)
	}
	if since == nil || lasts == nil {
		return nil
	}
	if s.since, s.lasts = *since, *lasts; !r.hold(s) {
		return nil
	}
	reason := fmt.Sprintf("it has not answered its liveness probe since %s: %s", s.since.UTC().Format("2006-01-02 15:04 UTC"), v.Why)
	_, err := catalog.Store{}.Move(ctx, db, service.ID, catalog.Change{Cause: catalog.CauseReview, By: catalog.System, Reason: reason})
	return err
}

// A LastCheck is when a service was last asked on the rounds, and what came of it. Times are zero where nothing came of it yet.
type LastCheck struct {
	At          time.Time
	AnsweredAt  time.Time // the last time that it did
	SilentSince time.Time // zero: it answered when it was asked last
}

const lastCheckSQL = `SELECT checked_at, answered_at, unanswered_since FROM service_probes WHERE service_id = $1 AND probe_id IS NOT NULL`

// LastCheckOf returns the last check of a service; the zero one where it was not asked yet.
func LastCheckOf(ctx context.Context, db postgres.DB, service uuid.UUID) (c LastCheck, err error) {
	var answered, silent *time.Time
	switch err := db.QueryRow(ctx, lastCheckSQL, service).Scan(&c.At, &answered, &silent); {
	case errors.Is(err, pgx.ErrNoRows):
		return LastCheck{}, nil
	case err != nil:
		return LastCheck{}, fmt.Errorf("read the last check of service %s: %w", service, err)
	}
	if answered != nil {
		c.AnsweredAt = *answered
	}
	if silent != nil {
		c.SilentSince = *silent
	}
	return c, nil
}
