package delivery

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/notify"
	"market/internal/outage"
	"market/internal/upstream"
)

// A Guard tells outages of our own from failures of services: of this replica, and with the others of the fleet. Every replica runs one, and they agree
// over the rows that they keep.
type Guard struct {
	db      *pgxpool.Pool
	replica uuid.UUID
	review  *Review
	policy  outage.Policy
	outages outage.Store
	notices notify.Store
	open    atomic.Pointer[[]outage.Outage]
	passes  map[uuid.UUID]*pass // by outage; the ticks have them to themselves

	batch, batches int // passBatch and passBatches, but for tests
}

// NewGuard returns the guard of one replica. The review voids the strikes that an outage has caused.
func NewGuard(db *pgxpool.Pool, replica uuid.UUID, review *Review) *Guard {
	g := &Guard{db: db, replica: replica, review: review, policy: outage.Usual(), passes: map[uuid.UUID]*pass{}, batch: passBatch, batches: passBatches}
	g.open.Store(&[]outage.Outage{})
	return g
}

// Open returns the outages that held when the guard looked last. It asks nobody.
func (g *Guard) Open() []outage.Outage { return *g.open.Load() }

// Suspects says whether an outage of this replica or of the fleet held then, so that canaries are to be asked.
func (g *Guard) Suspects() bool {
	return slices.ContainsFunc(g.Open(), func(o outage.Outage) bool { return o.Replica == g.replica || o.Replica == uuid.UUID{} })
}

// SoundingsOf are what canaries said last.
func SoundingsOf(c *upstream.Canaries) outage.Soundings {
	last, before := c.Last()
	s := outage.Soundings{Failed: last.AllFail()}
	if before.AllFail() {
		s.Before = max(1, last.At.Sub(before.At))
	}
	return s
}

// Tick looks once: it begins and ends outages, finds what they excuse, and returns what the operator is to be told. It is called about once a second,
// by one at a time; while there is nothing to see it costs three small queries.
func (g *Guard) Tick(ctx context.Context, s outage.Soundings) ([]Telling, error) {
	stepped := g.step(ctx, s)
	told, err := g.settle(ctx)
	return told, errors.Join(stepped, err)
}

// step takes the outages of this replica, of the fleet, and of replicas that may have gone, to where the facts lead.
func (g *Guard) step(ctx context.Context, s outage.Soundings) error {
	m, err := minuteOf(ctx, g.db, g.policy, nil)
	if err != nil {
		return err
	}
	watched, err := g.outages.Watched(ctx, g.db, g.replica)
	if err != nil || len(g.changes(watched, m, s)) == 0 {
		return err
	}
	return pgx.BeginFunc(ctx, g.db, func(tx pgx.Tx) error {
		if err := g.outages.Lock(ctx, tx, g.replica); err != nil {
			return err
		}
		m, err := minuteOf(ctx, tx, g.policy, nil)
		if err != nil {
			return err
		}
		watched, err := g.outages.Watched(ctx, tx, g.replica)
		if err != nil {
			return err
		}
		for _, o := range g.changes(watched, m, s) {
			if o.ID == (uuid.UUID{}) {
				_, err = g.outages.Begin(ctx, tx, o)
			} else {
				err = g.outages.Keep(ctx, tx, o)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// changes returns the outages that are to be written: those that begin have no id yet.
func (g *Guard) changes(watched []outage.Outage, m minute, s outage.Soundings) (changed []outage.Outage) {
	after := slices.Clone(watched) // with what changes for the replicas, of which that of the fleet depends
	apply := func(replica uuid.UUID, f outage.Facts) {
		last := lastOf(watched, replica)
		next := last
		next.State = g.policy.Next(last.State, f)
		switch {
		case next.State == last.State:
			return
		case !last.Holds() && next.Holds():
			next = outage.Outage{Replica: replica, State: next.State, Failing: f.Failing}
			after = append(after, next)
		default:
			after[slices.Index(watched, last)] = next
		}
		changed = append(changed, next)
	}
	own := m.ofReplica(g.replica)
	own.Soundings = s
	apply(g.replica, own)
	for _, o := range watched {
		if o.Holds() && o.Replica != g.replica && o.Replica != (uuid.UUID{}) {
			apply(o.Replica, m.ofReplica(o.Replica))
		}
	}
	apply(uuid.UUID{}, m.ofFleet(g.policy, after))
	return changed
}
