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
	// standingCalls bounds what one reading of a service counts; scoreCalls what the reading of all counts of each.
	standingCalls = 20_000
	scoreCalls    = 1_000
)

// standingWindows are those that a service is shown with, the shortest first.
var standingWindows = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

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
const standingsSQL = `
WITH newest AS (
	SELECT recorded_at, outcome, party, latency_us
	  FROM deliveries
	 WHERE service_id = $1 AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
	   AND recorded_at > market_now() - (SELECT max(w) FROM unnest($2::interval[]) w)
	 ORDER BY recorded_at DESC LIMIT $3
)
SELECT w.place,` + countedSQL + `
  FROM unnest($2::interval[]) WITH ORDINALITY AS w (span, place)
  LEFT JOIN newest n ON n.recorded_at > market_now() - w.span
 GROUP BY w.place
 ORDER BY w.place`

// StandingsOf reads the standing of one service in the windows of 24 hours, 7 and 30 days.
func StandingsOf(ctx context.Context, db postgres.DB, service uuid.UUID) ([]Standing, error) {
	rows, err := db.Query(ctx, standingsSQL, service, standingWindows, standingCalls)
	if err != nil {
		return nil, fmt.Errorf("read the record of service %s: %w", service, err)
	}
	standings, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Standing, error) {
		var place int
		s, err := scanStanding(row, &place, standingCalls)
		if err == nil {
			s.Window = standingWindows[place-1]
		}
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the record of service %s: %w", service, err)
	}
	return standings, nil
}

const scoresSQL = `
SELECT s.id,` + countedSQL + `
  FROM services s
 CROSS JOIN LATERAL (
	SELECT recorded_at, outcome, party, latency_us
	  FROM deliveries
	 WHERE service_id = s.id AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
	   AND recorded_at > market_now() - $1::interval
	 ORDER BY recorded_at DESC LIMIT $2
 ) n
 WHERE s.state <> 'retired'
 GROUP BY s.id`

// standingsOfAll reads the standing of every service that was called within ScoreWindow.
func standingsOfAll(ctx context.Context, db postgres.DB) (map[uuid.UUID]Standing, error) {
	rows, err := db.Query(ctx, scoresSQL, ScoreWindow, scoreCalls)
	if err != nil {
		return nil, fmt.Errorf("read the records of all services: %w", err)
	}
	defer rows.Close()
	all := map[uuid.UUID]Standing{}
	for rows.Next() {
		var id uuid.UUID
		s, err := scanStanding(rows, &id, scoreCalls)
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

// scanStanding reads what countedSQL counted, after one column of the statement's own.
func scanStanding(row pgx.CollectableRow, first any, callsMax int) (Standing, error) {
	var (
		s         Standing
		latencies []int64
		last      *time.Time
		calls     int
	)
	if err := row.Scan(first, &s.Served, &s.Failed, &s.Refused, &s.Resting, &s.Elsewhere, &latencies, &last, &calls); err != nil {
		return Standing{}, err
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
