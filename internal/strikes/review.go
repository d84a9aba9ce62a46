package strikes

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

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

// Worst returns the gravest verdict on what counted at one of several moments: a service that is taken off the shelf at one stays off at the next.
func (p Policy) Worst(counts []Count) Verdict {
	worst := Stays
	for _, c := range counts {
		worst = max(worst, p.Verdict(c.Open, c.Sources))
	}
	return worst
}
