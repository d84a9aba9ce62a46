package refund

import (
	"context"
	"fmt"
	"time"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/source"
)

// Units are what is counted of what a rail's senders are shown, and whether they take work now. Every error of theirs that says that they do
// not is a *source.LimitError.
type Units interface {
	// Limited says from memory why nobody takes a refund now whose unit was set aside with the source unitOf; nil where somebody does.
	Limited(unitOf string) error
	// Reserve sets a unit aside for one refund, or takes the one that was set aside with the source unitOf when its payment was made.
	Reserve(ctx context.Context, unitOf string) (Reservation, error)
}

// A Reservation is leave to send one refund.
type Reservation interface {
	// In returns a context in which Sender.Settle uses it.
	In(ctx context.Context) context.Context
	// UsesSetAside says that it is the unit which was set aside with the payment.
	UsesSetAside() bool
	// Shown says that something has left us by it.
	Shown() bool
	// End gives back what was not used.
	End()
}

// reserve returns a context to send in, and how to end it. The unit that was set aside is crossed out before it is used: whoever dies in between has lost
// one, and counts too much rather than too little. Where nothing has left us by it in the end, it is set aside again.
func (w *Worker) reserve(ctx context.Context, rail Rail, r Refund) (sending context.Context, end func() error, err error) {
	if rail.Units == nil {
		return ctx, func() error { return nil }, nil
	}
	reserved, err := rail.Units.Reserve(ctx, r.UnitOf)
	if err != nil {
		return nil, nil, fmt.Errorf("set a unit aside for refund %s: %w", r.Payment.Call, err)
	}
	if reserved.UsesSetAside() {
		if err := w.store.useUnit(ctx, w.db, r.Payment.Call); err != nil {
			reserved.End()
			return nil, nil, err
		}
	}
	return reserved.In(ctx), func() error {
		reserved.End()
		if !reserved.UsesSetAside() || reserved.Shown() {
			return nil
		}
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
		defer cancel()
		return w.store.keepUnit(own, w.db, r.Payment.Call, r.UnitOf)
	}, nil
}

const useUnitSQL = `UPDATE refunds SET unit_of = '' WHERE call_id = $1`

func (Store) useUnit(ctx context.Context, db postgres.DB, id call.ID) error {
	if _, err := db.Exec(ctx, useUnitSQL, id); err != nil {
		return fmt.Errorf("use unit of refund %s: %w", id, err)
	}
	return nil
}

// keepTime bounds the setting aside of a unit again.
const keepTime = 5 * time.Second

const keepUnitSQL = `UPDATE refunds SET unit_of = $2 WHERE call_id = $1 AND unit_of = '' AND state NOT IN ('confirmed', 'void')`

func (Store) keepUnit(ctx context.Context, db postgres.DB, id call.ID, unitOf string) error {
	if _, err := db.Exec(ctx, keepUnitSQL, id, unitOf); err != nil {
		return fmt.Errorf("set the unit of refund %s aside again: %w", id, err)
	}
	return nil
}

// whyWaits is read by the caller whose money it is.
const whyWaits = "what sends refunds takes no work at the moment; this one is queued, and sent as soon as it does"

// shownWait is until a refund is looked for on the chain again that was shown before its source was found out.
const shownWait = time.Minute

// shownSQL says that a signature lives. Chain time is near enough to market time: one that has just lapsed is looked at once more, or once less.
const shownSQL = `EXISTS (SELECT FROM refund_signatures g WHERE g.call_id = refunds.call_id AND g.valid_before > extract(epoch FROM market_now()))`

// Whoever finds out first that nobody sends on a network moves all that waits for it in one statement, so that a thousand refunds do not find it out one by
// one. What was sent already and waits for its depth goes on: it needs nobody. Rows that somebody else is at are left to them, so that two such statements
// cannot wait for each other. Our own guard ($6) does not hold up those whose unit is set aside with that source. One that was shown may still be put on the
// chain by whoever saw it: it is looked for after $7, which needs nobody, and its caller is to hear of it. $4 is an instant of the database's own.
const waitForSQL = `
UPDATE refunds SET waits_for = $3, why = $5,
       next_at = CASE WHEN ` + shownSQL + ` THEN least($4, market_now() + $7::interval) ELSE $4 END
 WHERE call_id IN (
	SELECT call_id FROM refunds
	 WHERE network = $1 AND state NOT IN ('confirmed', 'void')
	   AND (call_id = $2 OR (state = 'owed' OR waits_for <> '') AND next_at < $4 AND NOT ($6 AND unit_of = $3) AND NOT ` + shownSQL + `)
	   FOR UPDATE SKIP LOCKED)`

// waitFor puts a refund off until a source takes work again, and with it all others of its network that wait for the same. Their attempts stay as they
// are: nobody has tried.
func (Store) waitFor(ctx context.Context, db postgres.DB, network string, id call.ID, limit *source.LimitError) error {
	if _, err := db.Exec(ctx, waitForSQL, network, id, limit.Source, limit.Until, whyWaits, limit.Why == source.Guarded, shownWait); err != nil {
		return fmt.Errorf("put off the refunds of %s until %s: %w", network, limit.Until.UTC().Format(time.RFC3339), err)
	}
	return nil
}

const resumeSQL = `
UPDATE refunds SET next_at = market_now()
 WHERE call_id IN (
	SELECT call_id FROM refunds
	 WHERE network = ANY($1) AND waits_for = ANY($2) AND state NOT IN ('confirmed', 'void') AND next_at > market_now()
	   FOR UPDATE SKIP LOCKED)`

// Resume makes everything due on some networks that waits for one of some sources: what any of them can do needs to wait for none. It may be called
// again, and where nothing waits.
func (Store) Resume(ctx context.Context, db postgres.DB, networks, sources []string) error {
	if _, err := db.Exec(ctx, resumeSQL, networks, sources); err != nil {
		return fmt.Errorf("resume the refunds of %v: %w", networks, err)
	}
	return nil
}

// The ones that were sent and wait for their depth need nothing more.
const waitingSQL = `
SELECT count(*) FROM refunds
 WHERE network = ANY($1) AND state NOT IN ('confirmed', 'void') AND (state = 'owed' OR waits_for <> '') AND unit_of = ''`

// Waiting counts the refunds of some networks that still need a unit.
func (Store) Waiting(ctx context.Context, db postgres.DB, networks []string) (n int64, err error) {
	if err := db.QueryRow(ctx, waitingSQL, networks).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the refunds that wait on %v: %w", networks, err)
	}
	return n, nil
}
