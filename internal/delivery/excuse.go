package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/outage"
)

// whyExcused follows the detail of a failure that is taken for ours.
const whyExcused = "; too many failed at once for it to be the service's doing, so it counts as an outage of ours"

// An outage that held at any moment since the call was asked is the reason: a request may take longer than the outage goes on.
const coveringSQL = `
SELECT id FROM outages
 WHERE (ended_at IS NULL OR ended_at >= $1) AND (replica IS NULL OR replica = $2)
 ORDER BY replica NULLS LAST, began_at LIMIT 1`

// excuse makes a failure ours where an outage of ours holds: its party is the platform, and nothing follows from it for the service. Its reason
// stays what was seen. One that makes an outage known begins it, here and now: a moment later it might have taken its service off the shelf.
func (r *Recorder) excuse(ctx context.Context, tx pgx.Tx, d Delivery) (Delivery, error) {
	if !d.excusable() {
		return d, nil
	}
	var by uuid.UUID
	err := tx.QueryRow(ctx, coveringSQL, d.AskedAt, d.replica()).Scan(&by)
	if errors.Is(err, pgx.ErrNoRows) {
		by, err = r.trip(ctx, tx, d)
	}
	if err != nil {
		return Delivery{}, fmt.Errorf("look for an outage of ours: %w", err)
	}
	if by == (uuid.UUID{}) {
		return d, nil
	}
	d.Party, d.Excused, d.Detail = call.Platform, by, d.Detail+whyExcused
	return d, nil
}

// excusable says whether it would be the service's doing that a call has failed. What the operator or the provider met moves nothing, so there is nothing
// to excuse.
func (d Delivery) excusable() bool {
	return d.Outcome == call.Failed && d.Party == call.Service && d.asked() && d.Origin.Counts()
}

// trip begins the outage that a failure makes known, and returns it; zero where it makes none known.
func (r *Recorder) trip(ctx context.Context, tx pgx.Tx, d Delivery) (uuid.UUID, error) {
	if !outage.Joins(d.Reason, d.asked(), d.Origin) {
		return uuid.UUID{}, nil
	}
	m, err := minuteOf(ctx, tx, r.outage, &d)
	if err != nil || len(m.all) == 0 {
		return uuid.UUID{}, err
	}
	watched, err := r.outages.Watched(ctx, tx, d.Replica)
	if err != nil {
		return uuid.UUID{}, err
	}
	if d.Replica != (uuid.UUID{}) {
		if o, begins := begins(r.outage, watched, d.Replica, m.ofReplica(d.Replica)); begins {
			o, err = r.outages.Begin(ctx, tx, o)
			return o.ID, err
		}
	}
	if o, begins := begins(r.outage, watched, uuid.UUID{}, m.ofFleet(r.outage, watched)); begins {
		o, err = r.outages.Begin(ctx, tx, o)
		return o.ID, err
	}
	return uuid.UUID{}, nil
}

// begins says whether the facts begin an outage of a replica, or with the zero id of the fleet.
func begins(p outage.Policy, watched []outage.Outage, replica uuid.UUID, f outage.Facts) (outage.Outage, bool) {
	last := lastOf(watched, replica)
	next := p.Next(last.State, f)
	if last.Holds() || !next.Holds() {
		return outage.Outage{}, false
	}
	return outage.Outage{Replica: replica, State: next, Failing: f.Failing}, true
}

// lastOf is the last outage of a replica, or with the zero id of the fleet; zero where there was none. They are in the order of their beginnings.
func lastOf(watched []outage.Outage, replica uuid.UUID) (last outage.Outage) {
	for _, o := range watched {
		if o.Replica == replica {
			last = o
		}
	}
	return last
}
