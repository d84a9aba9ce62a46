package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// TallyCalls bounds what one reading of a service counts; ScoreCalls what the reading of all counts of each, and scoreRows of all together, as
	// long as none falls under scoreCallsMin.
	TallyCalls    = 5_000
	ScoreCalls    = 1_000
	scoreCallsMin = 50
	scoreRows     = 200_000
	// scoreBatch is how many services one statement reads.
	scoreBatch = 100
)

// tallyWindows are those that a service is shown with, the shortest first.
var tallyWindows = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

// ScoreWindow is the one that all services are compared by.
const ScoreWindow = 7 * 24 * time.Hour

// boundedSQL leaves the planner only ways that need no sorting. With the order of talliesSQL that is the one through deliveries_of_paid_record,
// which ends at the limit: left to itself the planner may read every row that a busy service has, and sort them or throw those of trials away.
const boundedSQL = `
SELECT set_config('enable_' || way, 'off', true) FROM unnest(ARRAY['seqscan', 'bitmapscan', 'sort', 'incremental_sort']) AS way`

// The newest rows are cut off first, and one more is read than is counted, to know whether there were more. A row without a service's doing and
// not served is somebody else's.
const talliesSQL = `
WITH windows AS MATERIALIZED (
	SELECT place, market_now() - span AS since FROM unnest($2::interval[]) WITH ORDINALITY AS w (span, place)
)
SELECT s.id, t.*
  FROM unnest($1::uuid[]) AS s (id)
 CROSS JOIN LATERAL (
	WITH paid AS MATERIALIZED (
		SELECT recorded_at, outcome, party, latency_us, payer, row_number() OVER (ORDER BY trial, recorded_at DESC) AS nth
		  FROM deliveries
		 WHERE service_id = s.id AND NOT trial AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
		   AND recorded_at > (SELECT min(since) FROM windows)
		 ORDER BY trial, recorded_at DESC LIMIT $3 + 1
	), tried AS MATERIALIZED (
		SELECT recorded_at, outcome
		  FROM deliveries
		 WHERE service_id = s.id AND trial AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
		   AND recorded_at > (SELECT min(since) FROM windows)
		 ORDER BY trial, recorded_at DESC LIMIT $3
	)
	SELECT w.place,
	       count(*) FILTER (WHERE n.outcome = 'served' AND n.party = 'service'),
	       count(*) FILTER (WHERE n.outcome = 'failed' AND n.party = 'service'),
	       count(*) FILTER (WHERE n.outcome = 'refused'),
	       count(*) FILTER (WHERE n.outcome = 'cooldown_refused'),
	       count(*) FILTER (WHERE n.outcome = 'failed' AND n.party <> 'service'),
	       count(*) FILTER (WHERE n.outcome = 'served' AND n.party <> 'service'),
	       count(DISTINCT n.payer) FILTER (WHERE n.outcome IN ('served', 'failed') AND n.party = 'service'),
	       coalesce(percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY n.latency_us)
	                FILTER (WHERE n.outcome = 'served' AND n.party = 'service'), '{}'),
	       max(n.recorded_at) FILTER (WHERE n.outcome = 'served' AND n.party = 'service'),
	       CASE WHEN EXISTS (SELECT 1 FROM paid more WHERE more.nth > $3 AND more.recorded_at > w.since) THEN min(n.recorded_at) END,
	       (SELECT count(*) FROM tried x WHERE x.recorded_at > w.since),
	       (SELECT count(*) FROM tried x WHERE x.recorded_at > w.since AND x.outcome = 'served')
	  FROM windows w
	  LEFT JOIN paid n ON n.recorded_at > w.since AND n.nth <= $3
	 GROUP BY w.place, w.since
 ) t
 ORDER BY t.place`

// talliesOf reads the tallies of services in these windows, in their order, each of at most so many of its newest calls. The transaction is
// one that boundedSQL was said to.
func talliesOf(ctx context.Context, tx pgx.Tx, services []uuid.UUID, windows []time.Duration, callsMax int) (map[uuid.UUID][]Tally, error) {
	rows, err := tx.Query(ctx, talliesSQL, services, windows, callsMax)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[uuid.UUID][]Tally, len(services))
	for rows.Next() {
		var (
			id          uuid.UUID
			place       int
			s           Tally
			latencies   []int64
			last, since *time.Time
		)
		if err := rows.Scan(&id, &place, &s.Served, &s.Failed, &s.Refused, &s.Resting, &s.Elsewhere, &s.Left, &s.Payers, &latencies, &last, &since,
			&s.Trials, &s.TrialsServed); err != nil {
			return nil, err
		}
		if len(latencies) == 2 {
			s.P50, s.P99 = time.Duration(latencies[0])*time.Microsecond, time.Duration(latencies[1])*time.Microsecond
		}
		for to, from := range map[*time.Time]*time.Time{&s.LastServed: last, &s.Since: since} {
			if from != nil {
				*to = from.UTC()
			}
		}
		s.Window = windows[place-1]
		all[id] = append(all[id], s)
	}
	return all, rows.Err()
}

// bounded runs a reading of records.
func bounded(ctx context.Context, db *pgxpool.Pool, read func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, boundedSQL); err != nil {
			return err
		}
		return read(tx)
	})
}

// talliesOfOne reads the tally of one service in the windows of 24 hours, 7 and 30 days.
func talliesOfOne(ctx context.Context, db *pgxpool.Pool, service uuid.UUID) ([]Tally, error) {
	var tallies []Tally
	err := bounded(ctx, db, func(tx pgx.Tx) error {
		all, err := talliesOf(ctx, tx, []uuid.UUID{service}, tallyWindows, TallyCalls)
		tallies = all[service]
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the record of service %s: %w", service, err)
	}
	return tallies, nil
}

// Also those that have left the shelf: their record is shown with them.
const shelfSQL = `SELECT id FROM services ORDER BY id`

// talliesOfAll reads the tally of every service within ScoreWindow. What it reads is bounded, however many services there are and however busy.
func talliesOfAll(ctx context.Context, db *pgxpool.Pool) (map[uuid.UUID]Tally, error) {
	all := map[uuid.UUID]Tally{}
	err := bounded(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, shelfSQL)
		if err != nil {
			return err
		}
		services, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return err
		}
		callsMax := scoreCallsOf(len(services))
		for len(services) > 0 {
			batch := services[:min(scoreBatch, len(services))]
			services = services[len(batch):]
			read, err := talliesOf(ctx, tx, batch, []time.Duration{ScoreWindow}, callsMax)
			if err != nil {
				return err
			}
			for id, tallies := range read {
				all[id] = tallies[0]
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the records of all services: %w", err)
	}
	return all, nil
}

// scoreCallsOf is how many calls are counted of each of so many services.
func scoreCallsOf(services int) int {
	return max(scoreCallsMin, min(ScoreCalls, scoreRows/max(1, services)))
}
