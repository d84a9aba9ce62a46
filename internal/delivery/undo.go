package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/catalog"
	"market/internal/postgres"
	"market/internal/strikes"
)

// A departure is one time that strikes took a service off the shelf, and what is to be said of it by the strikes that still count.
type departure struct {
	At      time.Time
	From    catalog.State
	To      catalog.State // delisted or held
	Policy  strikes.Policy
	Verdict strikes.Verdict // gravest since, by the policy of then; given by recount
}

// belongs says in which state a service belongs that strikes took off the shelf, by its departures since it was last on it, the newest first. A
// departure that still stands keeps the service where it led. One that falls short leads back to where it came from: that was an earlier departure,
// which may fall short too, or the work of a person or of a measurement, which is none of this.
func belongs(departures []departure) catalog.State {
	var back catalog.State
	for _, d := range departures {
		switch {
		case d.Verdict == strikes.Delists && d.To == catalog.Delisted:
			return catalog.Delisted
		case d.Verdict != strikes.Stays && d.From == catalog.Suspended:
			return catalog.Suspended // it was off the shelf in any case
		case d.Verdict != strikes.Stays:
			return catalog.Held
		case d.From != catalog.Held:
			return d.From
		}
		back = d.From
	}
	return back
}

// undo puts a service back where it belongs by the strikes that still count. Strikes that came after it left, by calls that were under way, are counted
// as if it had stayed: where they alone take it off the shelf, it stays off. It says whether the service moved.
func (r *Review) undo(ctx context.Context, tx pgx.Tx, before subject, change catalog.Change) (bool, error) {
	if before.State != catalog.Delisted && before.State != catalog.Held {
		return false, nil
	}
	departures, err := r.departures(ctx, tx, before)
	if err != nil || len(departures) == 0 {
		return false, err
	}
	to := belongs(departures)
	if to == before.State {
		return false, nil
	}
	switch to {
	case catalog.Listed:
		change.Cause = catalog.CauseVoid
	case catalog.Suspended:
		change.Cause = catalog.CauseVoidSuspended
	case catalog.Held:
		change.Cause = catalog.CauseVoidHeld
	case catalog.Delisted, catalog.Retired:
		return false, nil // a review takes nothing off the shelf
	}
	moved, err := r.catalog.Move(ctx, tx, before.service, change)
	if err == nil && !moved {
		err = fmt.Errorf("service %s does not move from %s to %s", before.service, before.State, to)
	}
	return moved, err
}

const (
	departuresSQL = `
SELECT at, from_state, CASE kind WHEN 'held' THEN 'held' ELSE 'delisted' END, strike_limit, strike_window, sources_needed
  FROM delistings
 WHERE service_id = $1
   AND at >= (SELECT max(at) FROM service_events WHERE service_id = $1 AND to_state = 'listed')
 ORDER BY at DESC, id DESC
 LIMIT 20`

	// A program from before the table of delistings wrote none.
	departedSQL = `
SELECT at, from_state, to_state FROM service_events WHERE service_id = $1 AND to_state = 'delisted' ORDER BY id DESC LIMIT 1`
)

// departures returns the times that strikes took a service off the shelf since it was last on it, the newest first, each counted again.
func (r *Review) departures(ctx context.Context, tx pgx.Tx, before subject) ([]departure, error) {
	all, err := readDepartures(ctx, tx, before.service)
	if err != nil {
		return nil, err
	}
	if before.State == catalog.Delisted && (len(all) == 0 || all[0].To != catalog.Delisted) {
		d := departure{Policy: r.strikes.Policy()}
		if err := tx.QueryRow(ctx, departedSQL, before.service).Scan(&d.At, &d.From, &d.To); err != nil {
			return nil, fmt.Errorf("find the delisting of service %s: %w", before.service, err)
		}
		all = append([]departure{d}, all...)
	}
	for i, d := range all {
		counts, err := countsSince(ctx, tx, before.service, d.At, d.Policy.Window)
		if err != nil {
			return nil, err
		}
		all[i].Verdict = d.Policy.Worst(counts)
	}
	return all, nil
}

func readDepartures(ctx context.Context, tx pgx.Tx, service uuid.UUID) ([]departure, error) {
	rows, err := tx.Query(ctx, departuresSQL, service)
	if err != nil {
		return nil, fmt.Errorf("find delistings of service %s: %w", service, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d departure, err error) {
		err = row.Scan(&d.At, &d.From, &d.To, &d.Policy.Limit, &d.Policy.Window, &d.Policy.Sources)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("find delistings of service %s: %w", service, err)
	}
	return all, nil
}

// The moments are the one that is asked about, and each later one at which a strike opened or its evidence came from another network: whatever can
// change a verdict for the worse. A strike that was cleared since was open then; one that is voided or archived never counted.
const countsSQL = `
WITH counting AS (
	SELECT id, opened_at, cleared_at FROM strikes
	 WHERE service_id = $1 AND state IN ('open', 'cleared') AND opened_at > $2::timestamptz - $3::interval
), evidence AS (
	SELECT c.id, ` + networkSQL + ` AS source, min(d.recorded_at) AS since
	  FROM counting c JOIN strike_deliveries sd ON sd.strike_id = c.id JOIN deliveries d ON d.id = sd.delivery_id
	 WHERE d.excused_by IS NULL
	 GROUP BY c.id, source
), moments AS (
	SELECT $2::timestamptz AS at
	 UNION SELECT opened_at FROM counting WHERE opened_at > $2
	 UNION SELECT since FROM evidence WHERE since > $2
)
SELECT m.at, count(DISTINCT c.id), count(DISTINCT e.source)
  FROM moments m
  LEFT JOIN counting c ON c.opened_at <= m.at AND c.opened_at > m.at - $3::interval AND (c.cleared_at IS NULL OR c.cleared_at > m.at)
  LEFT JOIN evidence e ON e.id = c.id AND e.since <= m.at
 GROUP BY m.at
 ORDER BY m.at
 LIMIT 10000`

// countsSince returns what counted of a service at a moment and at each later one at which more did, all by what is known of its strikes now.
func countsSince(ctx context.Context, db postgres.DB, service uuid.UUID, since time.Time, window time.Duration) ([]strikes.Count, error) {
	rows, err := db.Query(ctx, countsSQL, service, since, window)
	if err != nil {
		return nil, fmt.Errorf("recount strikes of service %s: %w", service, err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[strikes.Count])
	if err != nil {
		return nil, fmt.Errorf("recount strikes of service %s: %w", service, err)
	}
	return counts, nil
}
