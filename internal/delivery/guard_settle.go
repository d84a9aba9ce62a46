package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/notify"
	"market/internal/outage"
	"market/internal/refusal"
	"market/internal/replica"
)

// settleAfter is how long after the end of an outage what it excuses is still looked for. A failure that was recorded beside its beginning, by a
// transaction that did not see it yet, is there by then: no transaction that ends a call takes as long.
const settleAfter = time.Minute

// A Telling is what the operator is to be told of an outage: that it holds, or that it is over.
type Telling struct {
	Outage outage.Outage
	Over   bool
	Text   string
}

// settle finds what outages excuse, and tells of them. It can stop anywhere, and be done by several replicas at once: what was done is not done again.
func (g *Guard) settle(ctx context.Context) ([]Telling, error) {
	unsettled, err := g.outages.Unsettled(ctx, g.db)
	if err != nil {
		return nil, err
	}
	open := make([]outage.Outage, 0, len(unsettled))
	for _, o := range unsettled {
		if o.Holds() {
			open = append(open, o)
		}
	}
	g.open.Store(&open)
	g.forget(unsettled)
	var errs []error
	for _, o := range unsettled {
		errs = append(errs, g.undo(ctx, o))
	}
	told, err := g.tell(ctx, unsettled, open)
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return told, errors.Join(errs...) // nothing counts as settled: the next tick goes on with it
	}
	for _, o := range unsettled {
		if g.passOf(o.ID).over {
			errs = append(errs, g.outages.Settle(ctx, g.db, o.ID, settleAfter))
		}
	}
	return told, errors.Join(errs...)
}

const (
	// One replica at a time, so that two do not wait for each other's rows; the other one has nothing to do.
	aloneSQL = `SELECT pg_try_advisory_xact_lock(hashtextextended('excuse deliveries', 0))`

	// What own and provider traffic met has moved nothing, and stays what it was.
	excuseSQL = `
WITH batch AS MATERIALIZED (
	SELECT id, recorded_at, asked_at, replica, party
	  FROM deliveries
	 WHERE recorded_at >= $2 AND (recorded_at, id) > ($2, $6) AND outcome = 'failed' AND asked AND origin IN ('external', 'unattributed')
	 ORDER BY recorded_at, id LIMIT $7
), excused AS (
	UPDATE deliveries d SET party = 'platform', excused_by = $1, detail = d.detail || $5
	  FROM batch b
	 WHERE d.id = b.id AND d.party = 'service' AND ($3::timestamptz IS NULL OR b.asked_at <= $3) AND ($4::uuid IS NULL OR b.replica = $4)
)
SELECT recorded_at, id FROM batch ORDER BY recorded_at, id`

	// The strikes of which an outage excuses evidence.
	shakenSQL = `
  FROM deliveries d
  JOIN strike_deliveries sd ON sd.delivery_id = d.id
  JOIN strikes st ON st.id = sd.strike_id
  JOIN services s ON s.id = st.service_id
 WHERE d.recorded_at >= $1 AND d.outcome = 'failed' AND d.asked AND d.origin IN ('external', 'unattributed') AND d.excused_by = $2`

	// A strike falls that rests on nothing but what was excused. One that has other evidence, too, stays. One that a success has cleared counts only
	// where it has taken its service off the shelf before.
	groundlessSQL = `
SELECT id FROM (SELECT DISTINCT st.id, st.opened_at` + shakenSQL + `
   AND (st.state = 'open' OR st.state = 'cleared' AND s.state IN ('delisted', 'held'))
   AND NOT EXISTS (SELECT 1 FROM strike_deliveries other JOIN deliveries o ON o.id = other.delivery_id
                    WHERE other.strike_id = st.id AND o.excused_by IS NULL)) groundless
 ORDER BY opened_at, id LIMIT 1000`

	// A strike that stays can have lost a network that its service was delisted by.
	recountSQL = `
SELECT DISTINCT st.service_id` + shakenSQL + `
   AND st.state IN ('open', 'cleared') AND s.state IN ('delisted', 'held')
 ORDER BY st.service_id LIMIT 1000`
)

// undo makes the failures ours that an outage excuses and that were recorded before it was known, voids the strikes that rested on them, and counts
// again where they were a part of more.
func (g *Guard) undo(ctx context.Context, o outage.Outage) error {
	if err := g.excuse(ctx, o, g.passOf(o.ID)); err != nil {
		return err
	}
	if err := g.review.endRests(ctx, o); err != nil {
		return err
	}
	groundless, err := readShaken(g.db.Query(ctx, groundlessSQL, o.Reaches, o.ID))
	if err != nil {
		return err
	}
	var errs []error
	for _, strike := range groundless {
		_, err := g.review.Void(ctx, strike, catalog.System, voidReason(o))
		if no, refused := errors.AsType[*refusal.Error](err); refused && no.Reason == call.Conflict {
			continue // somebody has decided about it
		}
		errs = append(errs, err)
	}
	left, err := readShaken(g.db.Query(ctx, recountSQL, o.Reaches, o.ID))
	errs = append(errs, err)
	for _, service := range left {
		errs = append(errs, g.review.recount(ctx, service, voidReason(o)))
	}
	return errors.Join(errs...)
}

// readShaken reads strikes, or their services, of which an outage excuses evidence.
func readShaken(rows pgx.Rows, err error) ([]uuid.UUID, error) {
	if err != nil {
		return nil, fmt.Errorf("find strikes of an outage: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("find strikes of an outage: %w", err)
	}
	return ids, nil
}

// tell raises a notice of each outage that holds, and settles those of the others. What it did is to be told by this replica.
func (g *Guard) tell(ctx context.Context, unsettled, open []outage.Outage) (told []Telling, err error) {
	if len(unsettled) == 0 {
		return nil, nil
	}
	var fleet []replica.Replica
	if len(open) > 0 {
		if fleet, _, err = (replica.Store{}).Alive(ctx, g.db); err != nil {
			return nil, err
		}
	}
	for _, o := range open {
		notice := noticeOf(o, fleet)
		raised, err := g.notices.Raise(ctx, g.db, notify.OwnOutage, o.Subject(), notice)
		if err != nil {
			return told, err
		}
		if raised {
			told = append(told, Telling{Outage: o, Text: notice.Text()})
		}
	}
	for _, o := range unsettled {
		if lastOf(open, o.Replica).Holds() {
			continue
		}
		settled, err := g.notices.Settle(ctx, g.db, notify.OwnOutage, o.Subject())
		if err != nil {
			return told, err
		}
		if settled {
			told = append(told, Telling{Outage: o, Over: true, Text: "failures are the services' own doing again"})
		}
	}
	return told, nil
}

// knownBy says in words by what an outage was known.
func knownBy(o outage.Outage) string {
	switch o.Cause {
	case outage.Canaries:
		return "none of the hosts in MARKET_CANARIES could be reached from here"
	case outage.Services:
		return fmt.Sprintf("%d of the %d services that were asked within a minute, and that had served somebody the day before, failed at once; they are of %d providers",
			o.Failing.Failed, o.Failing.Asked, o.Failing.Providers)
	}
	return "its cause was not kept"
}

// timeText is a time of the market for people.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// voidReason is what the audit and the provider are told of a strike that an outage of ours has caused. Which replica it was is for the operator.
func voidReason(o outage.Outage) string {
	whose := "of the marketplace itself"
	if o.Replica != (uuid.UUID{}) {
		whose += ", of one of its replicas"
	}
	return fmt.Sprintf("an outage %s, known since %s: %s", whose, timeText(o.Began), knownBy(o))
}

// noticeOf says what has stopped, since when, what that changes, and what to look at.
func noticeOf(o outage.Outage, fleet []replica.Replica) notify.Outage {
	whose := "the whole fleet"
	if o.Replica != (uuid.UUID{}) {
		whose = o.Subject()
		for _, r := range fleet {
			if r.ID == o.Replica {
				whose += " at " + r.Address
			}
		}
	}
	return notify.Outage{
		What: fmt.Sprintf("failures are taken for an outage of %s since %s, and excused from %s on: %s", whose, timeText(o.Began), timeText(o.Reaches), knownBy(o)),
		Effect: "while this holds no failed call is a strike or starts a cooldown; callers get their money back as always. It is over by itself once failures " +
			"are the services' own doing again",
		Look: "the resolver, the network, the firewall and the certificates of where this runs\n/admin/outages",
	}
}
