package strikes

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

// A State is what became of a strike. An open one counts while it is in the window; no other does.
type State string

const (
	Open     State = "open"
	Cleared  State = "cleared"  // by a success that was asked after its last evidence
	Voided   State = "voided"   // by a review: it was none
	Archived State = "archived" // by a review, which put its service back on the shelf
)

// States returns every state.
func States() []State { return []State{Open, Cleared, Voided, Archived} }

// Closed says that a review has settled the strike for good.
func (s State) Closed() bool { return s == Voided || s == Archived }

// What a review closes folds no longer: who is asked after it meets another incident. What was asked before it belongs to this one, joins it as
// evidence, and does not count.
const (
	voidSQL = `
UPDATE strikes SET state = 'voided', closed_at = market_now(), folds_until = least(folds_until, market_now())
 WHERE id = $1 AND state IN ('open', 'cleared')`

	archiveSQL = `
UPDATE strikes SET state = 'archived', closed_at = market_now(), folds_until = least(folds_until, market_now())
 WHERE service_id = $1 AND state = 'open'`
)

// Void makes a strike one that never counted, and says whether it did: one that a review has closed stays as it is. The service's row must be locked
// by the same transaction.
func (Store) Void(ctx context.Context, db postgres.DB, strike uuid.UUID) (bool, error) {
	tag, err := db.Exec(ctx, voidSQL, strike)
	if err != nil {
		return false, fmt.Errorf("void strike %s: %w", strike, err)
	}
	return tag.RowsAffected() == 1, nil
}

// Archive closes the open strikes of a service, whose row must be locked by the same transaction, and returns how many there were.
func (Store) Archive(ctx context.Context, db postgres.DB, service uuid.UUID) (int, error) {
	tag, err := db.Exec(ctx, archiveSQL, service)
	if err != nil {
		return 0, fmt.Errorf("archive strikes of service %s: %w", service, err)
	}
	return int(tag.RowsAffected()), nil
}

// A Count is what counted at one moment.
type Count struct {
	At      time.Time
	Open    int // strikes that were open and in the window
	Sources int // different networks (/24, /48) that their evidence came from
}

// The moments are the one that is asked about, and each later one at which a strike opened or its evidence came from another network: whatever can
// change a verdict for the worse. A strike that was cleared since was open then; one that is voided or archived never counted.
const countsSQL = `
WITH counting AS (
	SELECT id, opened_at, cleared_at FROM strikes
	 WHERE service_id = $1 AND state IN ('open', 'cleared') AND opened_at > $2::timestamptz - $3::interval
), evidence AS (
	SELECT c.id, network(set_masklen(d.source, CASE family(d.source) WHEN 4 THEN 24 ELSE 48 END)) AS source, min(d.recorded_at) AS since
	  FROM counting c JOIN strike_deliveries sd ON sd.strike_id = c.id JOIN deliveries d ON d.id = sd.delivery_id
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

// CountsSince returns what counted of a service at a moment and at each later one at which more did, all by what is known of the strikes now.
func (Store) CountsSince(ctx context.Context, db postgres.DB, service uuid.UUID, since time.Time, window time.Duration) ([]Count, error) {
	rows, err := db.Query(ctx, countsSQL, service, since, window)
	if err != nil {
		return nil, fmt.Errorf("recount strikes of service %s: %w", service, err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Count])
	if err != nil {
		return nil, fmt.Errorf("recount strikes of service %s: %w", service, err)
	}
	return counts, nil
}

// Worst returns the gravest verdict on what counted at one of several moments: a service that is taken off the shelf at one stays off at the next.
func (p Policy) Worst(counts []Count) Verdict {
	worst := Stays
	for _, c := range counts {
		worst = max(worst, p.Verdict(c.Open, c.Sources))
	}
	return worst
}
