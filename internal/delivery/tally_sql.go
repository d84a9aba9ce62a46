package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

const (
	// tallyCalls bounds what one reading of a service counts; scoreCalls what the reading of all counts of each.
	tallyCalls = 5_000
	scoreCalls = 1_000
)

// tallyWindows are those that a service is shown with, the shortest first.
var tallyWindows = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

// ScoreWindow is the one that all services are compared by.
const ScoreWindow = 7 * 24 * time.Hour

// countedSQL counts rows of deliveries_of_record, called n. A row without a service's doing and not served is somebody else's.
const countedSQL = `
       count(*) FILTER (WHERE n.outcome = 'served'),
       count(*) FILTER (WHERE n.outcome = 'failed' AND n.party = 'service'),
       count(*) FILTER (WHERE n.outcome = 'refused'),
       count(*) FILTER (WHERE n.outcome = 'cooldown_refused'),
       count(*) FILTER (WHERE n.outcome = 'failed' AND n.party <> 'service'),
       coalesce(percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY n.latency_us) FILTER (WHERE n.outcome = 'served'), '{}'),
       max(n.recorded_at) FILTER (WHERE n.outcome = 'served'),
       count(n.recorded_at)`

// The newest are cut off first, by the index alone: what a busy service costs to read is bounded, and said.
const talliesSQL = `
WITH windows AS MATERIALIZED (
	SELECT place, market_now() - span AS since FROM unnest($2::interval[]) WITH ORDINALITY AS w (span, place)
), newest AS MATERIALIZED (
	SELECT recorded_at, outcome, party, latency_us
	  FROM deliveries
	 WHERE service_id = $1 AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
	   AND recorded_at > (SELECT min(since) FROM windows)
	 ORDER BY recorded_at DESC LIMIT $3
)
SELECT w.place,` + countedSQL + `
  FROM windows w
  LEFT JOIN newest n ON n.recorded_at > w.since
 GROUP BY w.place
 ORDER BY w.place`

// TalliesOf reads the tally of one service in the windows of 24 hours, 7 and 30 days.
func TalliesOf(ctx context.Context, db postgres.DB, service uuid.UUID) ([]Tally, error) {
	rows, err := db.Query(ctx, talliesSQL, service, tallyWindows, tallyCalls)
	if err != nil {
		return nil, fmt.Errorf("read the record of service %s: %w", service, err)
	}
	tallies, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Tally, error) {
		var place int
		s, err := scanTally(row, &place, tallyCalls)
		if err == nil {
			s.Window = tallyWindows[place-1]
		}
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the record of service %s: %w", service, err)
	}
	return tallies, nil
}

const scoresSQL = `
SELECT s.id,` + countedSQL + `
  FROM services s
 CROSS JOIN LATERAL (
	SELECT recorded_at, outcome, party, latency_us
	  FROM deliveries
	 WHERE service_id = s.id AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
	   AND recorded_at > (SELECT market_now() - $1::interval)
	 ORDER BY recorded_at DESC LIMIT $2
 ) n
 WHERE s.state <> 'retired'
 GROUP BY s.id`

// talliesOfAll reads the tally of every service that was called within ScoreWindow.
func talliesOfAll(ctx context.Context, db postgres.DB) (map[uuid.UUID]Tally, error) {
	rows, err := db.Query(ctx, scoresSQL, ScoreWindow, scoreCalls)
	if err != nil {
		return nil, fmt.Errorf("read the records of all services: %w", err)
	}
	defer rows.Close()
	all := map[uuid.UUID]Tally{}
	for rows.Next() {
		var id uuid.UUID
		s, err := scanTally(rows, &id, scoreCalls)
		if err != nil {
			return nil, fmt.Errorf("read the records of all services: %w", err)
		}
		s.Window = ScoreWindow
		all[id] = s
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the records of all services: %w", err)
	}
	return all, nil
}

// scanTally reads what countedSQL counted, after one column of the statement's own.
func scanTally(row pgx.CollectableRow, first any, callsMax int) (Tally, error) {
	var (
		s         Tally
		latencies []int64
		last      *time.Time
		calls     int
	)
	if err := row.Scan(first, &s.Served, &s.Failed, &s.Refused, &s.Resting, &s.Elsewhere, &latencies, &last, &calls); err != nil {
		return Tally{}, err
	}
	if len(latencies) == 2 {
		s.P50, s.P99 = time.Duration(latencies[0])*time.Microsecond, time.Duration(latencies[1])*time.Microsecond
	}
	if last != nil {
		s.LastServed = last.UTC()
	}
	s.Newest = calls >= callsMax
	return s, nil
}
