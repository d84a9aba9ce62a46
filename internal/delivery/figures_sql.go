package delivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
)

// MeasuredCalls bounds what is counted of each part of a service's deliveries: those of outsiders that reached it, those of outsiders that were
// turned down before, and those of each other origin; of all these, paid calls and trials by themselves. Nobody pushes one part out of what is counted by
// making many of another.
const MeasuredCalls = 5_000

// As in talliesSQL the newest rows are cut off first, by the two indexes that have every delivery between them, and one more of each part is read
// than is counted. The first rows of the answer are counts; those with a percentile are latencies, of an endpoint or, without one, of the service; those
// with a moment say from when on all are counted.
const measuredSQL = `
WITH windows AS MATERIALIZED (
	SELECT place, market_now() - span AS since FROM unnest($2::interval[]) WITH ORDINALITY AS w (span, place)
), parts AS MATERIALIZED (
	SELECT kind.trial, 'external' AS origin, n.*
	  FROM unnest(ARRAY[false, true]) AS kind (trial)
	 CROSS JOIN LATERAL (
		SELECT recorded_at, endpoint_id, outcome, reason, party, latency_us, row_number() OVER newest AS nth, lag(recorded_at) OVER newest AS newer
		  FROM deliveries
		 WHERE service_id = $1 AND trial = kind.trial AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
		   AND recorded_at > (SELECT min(since) FROM windows)
		WINDOW newest AS (ORDER BY trial, recorded_at DESC)
		 ORDER BY trial, recorded_at DESC LIMIT $3 + 1
	 ) n
	UNION ALL
	SELECT kind.trial, kind.origin, n.*
	  FROM (SELECT trial, origin FROM unnest(ARRAY[false, true]) AS t (trial), unnest($4::text[]) AS o (origin)) AS kind
	 CROSS JOIN LATERAL (
		SELECT recorded_at, endpoint_id, outcome, reason, party, latency_us, row_number() OVER newest AS nth, lag(recorded_at) OVER newest AS newer
		  FROM deliveries
		 WHERE service_id = $1 AND trial = kind.trial AND origin = kind.origin
		   AND (origin NOT IN ('external', 'unattributed') OR (NOT asked AND outcome = 'refused'))
		   AND recorded_at > (SELECT min(since) FROM windows)
		WINDOW newest AS (ORDER BY trial, origin, recorded_at DESC)
		 ORDER BY trial, origin, recorded_at DESC LIMIT $3 + 1
	 ) n
), counted AS MATERIALIZED (
	SELECT w.place, p.* FROM parts p JOIN windows w ON p.recorded_at > w.since
)
SELECT place, trial, origin, endpoint_id, outcome, reason, party, count(*) AS n, NULL::bigint[] AS latencies, NULL::timestamptz AS since
  FROM counted WHERE nth <= $3
 GROUP BY place, trial, origin, endpoint_id, outcome, reason, party
UNION ALL
SELECT place, trial, origin, endpoint_id, outcome, '', '', count(*),
       percentile_disc(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY latency_us), NULL
  FROM counted WHERE nth <= $3 AND party = 'service' AND outcome IN ('served', 'failed')
 GROUP BY GROUPING SETS ((1, 2, 3, 4, 5), (1, 2, 3, 5))
UNION ALL
SELECT place, trial, origin, NULL, '', '', '', 0, NULL, newer
  FROM counted WHERE nth = $3 + 1`

// A measuredRow is one row of measuredSQL.
type measuredRow struct {
	Place     int
	Trial     bool
	Origin    call.Origin
	Endpoint  *uuid.UUID
	Outcome   call.Outcome
	Reason    call.Reason
	Party     call.Party
	N         int
	Latencies []*int64
	Since     *time.Time
}

const measuredEndpointsSQL = `
SELECT id, method, path, retired_at IS NOT NULL FROM endpoints
 WHERE service_id = $1 AND (retired_at IS NULL OR id = ANY($2)) ORDER BY created_at, id`

// measuredOf reads what was measured of a service in the windows of 24 hours, 7 and 30 days, each part by at most so many of its newest deliveries.
func measuredOf(ctx context.Context, db *pgxpool.Pool, service uuid.UUID, callsMax int) ([]Measured, error) {
	var read []measuredRow
	var endpoints []MeasuredEndpoint
	err := bounded(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, measuredSQL, service, tallyWindows, callsMax, call.Origins())
		if err != nil {
			return err
		}
		if read, err = pgx.CollectRows(rows, pgx.RowToStructByPos[measuredRow]); err != nil {
			return err
		}
		var seen []uuid.UUID
		for _, r := range read {
			if r.Endpoint != nil {
				seen = append(seen, *r.Endpoint)
			}
		}
		if rows, err = tx.Query(ctx, measuredEndpointsSQL, service, seen); err != nil {
			return err
		}
		endpoints, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e MeasuredEndpoint, err error) {
			err = row.Scan(&e.ID, &e.Method, &e.Path, &e.Retired)
			return e, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what was measured of service %s: %w", service, err)
	}
	return measuredFrom(read, endpoints), nil
}

// measuredFrom puts rows together by window, endpoint and kind of traffic.
func measuredFrom(rows []measuredRow, endpoints []MeasuredEndpoint) []Measured {
	var all []Measured
	for i, window := range tallyWindows {
		inWindow := rows[:0:0]
		for _, r := range rows {
			if r.Place == i+1 {
				inWindow = append(inWindow, r)
			}
		}
		m := Measured{Window: window, Traffic: trafficOf(inWindow, nil)}
		for _, e := range endpoints {
			if e.Traffic = trafficOf(inWindow, &e.ID); len(e.Traffic) > 0 || !e.Retired {
				m.Endpoints = append(m.Endpoints, e)
			}
		}
		all = append(all, m)
	}
	return all
}

// trafficOf puts the rows of one window together by kind of traffic: of one endpoint, or of the whole service where it is nil.
func trafficOf(rows []measuredRow, endpoint *uuid.UUID) []Traffic {
	var all []Traffic
	for _, trial := range []bool{false, true} {
		for _, class := range Classes() {
			t := Traffic{Trial: trial, Class: class}
			for _, r := range rows {
				if r.Trial == trial && ClassOf(r.Origin) == class {
					t.add(r, endpoint)
				}
			}
			if len(t.Counts) == 0 {
				continue
			}
			slices.SortFunc(t.Counts, func(a, b Count) int {
				return cmp.Or(b.N-a.N, cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Party, b.Party))
			})
			all = append(all, t)
		}
	}
	return all
}

// add takes a row in, where it is of the endpoint or of the service that is asked for.
func (t *Traffic) add(r measuredRow, endpoint *uuid.UUID) {
	ofEndpoint := r.Endpoint != nil && endpoint != nil && *r.Endpoint == *endpoint
	switch {
	case r.Since != nil: // a part is cut off for all endpoints at once
		if since := r.Since.UTC(); since.After(t.Since) {
			t.Since = since
		}
	case r.Latencies != nil:
		if !ofEndpoint && (endpoint != nil || r.Endpoint != nil) {
			return
		}
		of := &t.Served
		if r.Outcome == call.Failed {
			of = &t.Failed
		}
		*of = Latency{N: r.N, P50: micros(r.Latencies[0]), P99: micros(r.Latencies[1])}
	case ofEndpoint || endpoint == nil:
		c := Count{r.Outcome, r.Reason, r.Party, r.N}
		at := slices.IndexFunc(t.Counts, func(o Count) bool { return o.Outcome == c.Outcome && o.Reason == c.Reason && o.Party == c.Party })
		if at < 0 {
			t.Counts = append(t.Counts, c)
			return
		}
		t.Counts[at].N += c.N
	}
}

// micros reads a percentile; nil: none of the deliveries says how long it took.
func micros(us *int64) time.Duration {
	if us == nil {
		return 0
	}
	return time.Duration(*us) * time.Microsecond
}
