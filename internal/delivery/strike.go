package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/catalog"
	"market/internal/letter"
	"market/internal/strikes"
)

// networkSQL is call.Network of a delivery d, in SQL: a test compares.
const networkSQL = `network(set_masklen(d.source, CASE family(d.source) WHEN 4 THEN 24 ELSE 48 END))`

// strike adds the evidence, and takes the service off the shelf where its strikes mean that, in the transaction that records the delivery.
func (r *Recorder) strike(ctx context.Context, tx pgx.Tx, d Delivery) error {
	others, err := othersOf(ctx, tx, d.Service)
	if err != nil {
		return err
	}
	added, err := r.strikes.Add(ctx, tx, strikes.Failure{Service: d.Service, Delivery: d.ID, AskedAt: d.AskedAt, Error: d.Error, Said: d.Said, Others: others})
	if err != nil {
		return err
	}
	moved, err := r.count(ctx, tx, d.Service, added)
	if err != nil {
		return err
	}
	if added.Opened {
		opened := telling{service: d.Service, kinds: []letter.Kind{letter.StrikeOpened}, reason: d.Detail, by: catalog.Recorder, strike: &added.Strike}
		if err := tell(ctx, tx, r.strikes.Policy(), opened); err != nil {
			return err
		}
	}
	return tell(ctx, tx, r.strikes.Policy(), telling{service: d.Service, kinds: cameTo(moved.to), reason: moved.reason, by: catalog.Recorder, strike: &added.Strike})
}

// A departed service was taken off the shelf by its strikes; to is empty where it was not.
type departed struct {
	to     catalog.State
	reason string
}

// count does what a failure means for the place of its service, by the strikes that are open now.
func (r *Recorder) count(ctx context.Context, tx pgx.Tx, service uuid.UUID, added strikes.Added) (departed, error) {
	// A failure that joins a strike counts nothing. It can bring the network that was missing, though, where evidence has to come from several.
	if policy := r.strikes.Policy(); !added.Opened && policy.Sources <= 1 {
		return departed{}, nil
	}
	open, err := r.strikes.CountOpen(ctx, tx, service)
	if err != nil || open < r.strikes.Policy().Limit {
		return departed{}, err
	}
	return r.judge(ctx, tx, service, added.Strike, open)
}

// How many networks the evidence comes from that counts at this moment. What an outage of ours excuses says nothing about the service, whoever met it.
const sourcesSQL = `
SELECT count(DISTINCT ` + networkSQL + `)
  FROM strikes st
  JOIN strike_deliveries sd ON sd.strike_id = st.id
  JOIN deliveries d ON d.id = sd.delivery_id
 WHERE st.service_id = $1 AND st.state = 'open' AND st.opened_at > market_now() - $2::interval AND d.excused_by IS NULL`

// A service that is off the shelf for a while is delisted all the same. It is held only where it is on the shelf.
const shelvedSQL = `
INSERT INTO delistings (id, service_id, kind, from_state, strike_limit, strike_window, sources_needed, strikes_open, sources_found, deciding_strike)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// judge does what so many open strikes mean, keeps by what they were counted, and returns where the service went. Where it cannot move that way,
// because it is delisted, retired or held already, nothing happens.
func (r *Recorder) judge(ctx context.Context, tx pgx.Tx, service, deciding uuid.UUID, open int) (departed, error) {
	policy := r.strikes.Policy()
	var sources int
	if err := tx.QueryRow(ctx, sourcesSQL, service, policy.Window).Scan(&sources); err != nil {
		return departed{}, fmt.Errorf("count sources of strikes of service %s: %w", service, err)
	}
	from, err := r.catalog.Lock(ctx, tx, service) // it is ours already, and says its state
	if err != nil {
		return departed{}, err
	}
	verdict, reason := policy.Verdict(open, sources), fmt.Sprintf("%d strikes within %s", open, windowText(policy.Window))
	var (
		to    catalog.State
		moved bool
	)
	switch verdict {
	case strikes.Stays:
		return departed{}, nil
	case strikes.Holds:
		to = catalog.Held
		reason = fmt.Sprintf("%s, with evidence from %d of the %d networks that delisting takes", reason, sources, policy.Sources)
		moved, err = r.catalog.Move(ctx, tx, service, catalog.Change{Cause: catalog.CauseReview, By: catalog.Recorder, Reason: reason})
	case strikes.Delists:
		to = catalog.Delisted
		moved, err = r.catalog.Delist(ctx, tx, service, reason)
	}
	if err != nil || !moved {
		return departed{}, err
	}
	_, err = tx.Exec(ctx, shelvedSQL, uuid.Must(uuid.NewV7()), service, verdict.String(), from, policy.Limit, policy.Window, max(1, policy.Sources), open, sources, deciding)
	if err != nil {
		return departed{}, fmt.Errorf("keep the delisting of service %s: %w", service, err)
	}
	return departed{to: to, reason: reason}, nil
}

// othersMax bounds how many deliveries of the minute are looked at, the newest first.
const othersMax = 5_000

// Where nobody but the caller or the rail spoiled a call, it says something about how services could be reached from here.
const othersSQL = `
SELECT count(*), count(*) FILTER (WHERE failed)
  FROM (SELECT service_id, bool_or(outcome = 'failed' AND party IN ('service', 'platform')) AS failed
          FROM (SELECT service_id, outcome, party FROM deliveries
                 WHERE recorded_at > market_now() - interval '1 minute' AND asked AND origin IN ('external', 'unattributed') AND service_id <> $1
                 ORDER BY recorded_at DESC LIMIT $2) newest
         GROUP BY service_id) service`

// The planner knows nothing of the last minute and takes it for empty: it would read all of it, and sort it, where the index deliveries_of_minute
// gives the newest rows in order. The rest of the transaction is planned as ever.
const (
	inOrderSQL = `SELECT set_config('enable_' || way, 'off', true) FROM unnest(ARRAY['seqscan', 'bitmapscan', 'sort']) AS way`
	asEverSQL  = `SELECT set_config('enable_' || way, 'on', true) FROM unnest(ARRAY['seqscan', 'bitmapscan', 'sort']) AS way`
)

// othersOf says how the other services fared in the minute before, in one round trip.
func othersOf(ctx context.Context, tx pgx.Tx, service uuid.UUID) (o strikes.Others, err error) {
	var batch pgx.Batch
	batch.Queue(inOrderSQL)
	batch.Queue(othersSQL, service, othersMax).QueryRow(func(row pgx.Row) error { return row.Scan(&o.Asked, &o.Failed) })
	batch.Queue(asEverSQL)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return strikes.Others{}, fmt.Errorf("read how others fared beside service %s: %w", service, err)
	}
	return o, nil
}

// windowText is a window for people, who read it at the listing.
func windowText(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return d.String()
}
