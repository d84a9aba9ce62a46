package app

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"market/internal/chain"
	"market/internal/config"
	"market/internal/readiness"
	"market/internal/refund"
	"market/internal/replica"
)

const (
	// readyAge is how long a result of a look is used where nothing says what may be lost: in development, and by a facilitator for others.
	readyAge = 5 * time.Second
	// readyTime bounds one look, and firstTime how long the doors stay shut for the first one.
	readyTime = 5 * time.Second
	firstTime = 3 * time.Second
	// fleetWait is how long a process that starts waits for the rows of dead ones to fall out before it says that there are too many: one that crashed and
	// begins again meets its own. fleetEvery is how often it looks.
	fleetWait  = replica.AliveFor + time.Second
	fleetEvery = 500 * time.Millisecond
)

// termsOf is what this process may lose and how fast. What may be lost is rounded down.
func termsOf(c config.Config) readiness.Terms {
	e := c.Exposure()
	if e.Budget.IsZero() {
		return readiness.Terms{}
	}
	micro := func(usd decimal.Decimal) int64 { return usd.Shift(6).IntPart() }
	return readiness.Terms{Budget: micro(e.Budget), Rate: micro(e.Rate), Burst: micro(e.Burst), Share: e.Share}
}

// rowOf is what stands of them in this process's row.
func rowOf(t readiness.Terms) replica.Terms {
	return replica.Terms{Budget: t.Budget, Rate: t.Rate, Burst: t.Burst, Share: t.Share}
}

// joinFleet writes this process's row, unless a proof could be used for too short a time if it ran, or the shares would be more than the whole.
func (a *App) joinFleet(ctx context.Context) error {
	if a.terms == (readiness.Terms{}) {
		return a.beatOnce(ctx)
	}
	began := time.Now()
	for {
		err := a.fits(ctx)
		if err == nil {
			break
		}
		if time.Since(began) >= fleetWait {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(fleetEvery):
		}
	}
	if err := a.beatOnce(ctx); err != nil {
		return err
	}
	// Of two that come at once each may have found room for itself alone.
	if err := a.fits(ctx); err != nil {
		a.leave(ctx)
		return err
	}
	return nil
}

// fits says why this process must not run beside those that do.
func (a *App) fits(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTime)
	defer cancel()
	alive, _, err := replica.Store{}.Alive(ctx, a.db)
	if err != nil {
		return err
	}
	others := members(alive)
	return readiness.FleetOf(a.path.Owner(), a.terms, others).Err(a.terms, others...)
}

// members are the processes that run, as readiness counts them.
func members(alive []replica.Replica) []readiness.Member {
	all := make([]readiness.Member, len(alive))
	for i, r := range alive {
		all[i] = readiness.Member{ID: r.ID, Beat: r.Beat, Terms: readiness.Terms{Budget: r.Terms.Budget, Rate: r.Terms.Rate, Burst: r.Terms.Burst, Share: r.Terms.Share}}
	}
	return all
}

// refresh looks at every network from now on, beside the requests, and waits a moment for the first look.
func (a *App) refresh(ctx, background context.Context) {
	for _, network := range a.ready.Networks() {
		a.loop(background, "readiness/"+network, func(ctx context.Context) { a.ready.Refresh(ctx, network) })
	}
	firstLook(ctx, a.ready)
	a.log.Info().Str("exposure", a.ready.Line()).Msg("how long a proof that payments work is used")
}

// firstLook waits for the first look at every network. Whoever does not answer is waited for by those who ask.
func firstLook(ctx context.Context, ready *readiness.Keeper) {
	ctx, cancel := context.WithTimeout(ctx, firstTime)
	defer cancel()
	ready.Looked(ctx)
}

// refunded says that a refund was put on the chain whose sending began at a time.
func (a *App) refunded(network string, began time.Time) {
	a.ready.Proved(network, readiness.Refund, began)
}

// proving tells of the refunds that a sender has put on the chain: each proves that refunds work.
type proving struct {
	refund.Sender
	proved func(began time.Time)
}

// Settle is the sender's. A refund that was on the chain before, or came there by somebody else's hand, proves nothing.
func (p proving) Settle(ctx context.Context, s chain.Signed) chain.Settlement {
	began := time.Now()
	got := p.Sender.Settle(ctx, s)
	if got.ByUs {
		p.proved(began)
	}
	return got
}
