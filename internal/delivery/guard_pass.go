package delivery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/outage"
	"market/internal/postgres"
)

const (
	// passBatch is how many failures are looked at in one transaction, and passBatches how many of those in one tick, for one outage: a tick has a
	// deadline, and what was done by then has to stay done.
	passBatch   = 500
	passBatches = 20
	// passRecent is how far back is looked once everything was looked at: no transaction that records a call takes as long.
	passRecent = 2 * time.Minute
)

// A pass is how far a guard has come with what one outage excuses. While the outage holds everything is looked at once, and from then on what is
// recent: failures are excused as they are recorded, and only those are left whose transaction did not see the outage yet. When it has been over for
// long enough everything is looked at once more. It is kept in memory: a guard that starts anew finds what is excused already, and changes nothing.
type pass struct {
	at   failureAt // where the look at everything goes on
	once bool      // everything was looked at
	last bool      // and is being looked at since it can be the last time
	over bool      // which is done: the outage excuses nothing more
}

// A failureAt is a place in the order in which failures are looked at: all of a moment by their ids.
type failureAt struct {
	recorded time.Time
	id       uuid.UUID
}

// passOf returns how far the guard has come with an outage.
func (g *Guard) passOf(o uuid.UUID) *pass {
	if g.passes[o] == nil {
		g.passes[o] = &pass{}
	}
	return g.passes[o]
}

// forget keeps the passes of the outages alone that are not settled.
func (g *Guard) forget(unsettled []outage.Outage) {
	maps.DeleteFunc(g.passes, func(id uuid.UUID, _ *pass) bool {
		return !slices.ContainsFunc(unsettled, func(o outage.Outage) bool { return o.ID == id })
	})
}

// excuse makes the failures ours that an outage excuses and that were recorded before it was known, as far as one tick goes.
func (g *Guard) excuse(ctx context.Context, o outage.Outage, p *pass) error {
	now, err := postgres.MarketNow(ctx, g.db)
	if err != nil {
		return err
	}
	if !p.last && !o.Holds() && !now.Before(o.Ended.Add(settleAfter)) {
		*p = pass{last: true}
	}
	if p.over {
		return nil
	}
	at := p.at
	if at.recorded.Before(o.Reaches) {
		at.recorded = o.Reaches
	}
	whole := p.last || !p.once
	if recent := now.Add(-passRecent); !whole && at.recorded.Before(recent) {
		at = failureAt{recorded: recent}
	}
	for range g.batches {
		var done, alone bool
		err := pgx.BeginFunc(ctx, g.db, func(tx pgx.Tx) (err error) {
			if err := tx.QueryRow(ctx, aloneSQL).Scan(&alone); err != nil || !alone {
				return err
			}
			at, done, err = g.review.excuse(ctx, tx, o, at, g.batch)
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("excuse failures by outage %s: %w", o.ID, err)
		case !alone:
			return nil
		case done && whole:
			*p = pass{once: true, last: p.last, over: p.last}
			return nil
		case done:
			return nil
		case whole:
			p.at = at
		}
	}
	return nil
}
