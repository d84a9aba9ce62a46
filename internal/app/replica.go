package app

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"market/internal/pulse"
	"market/internal/readiness"
	"market/internal/replica"
)

// beatTime bounds one heartbeat; a later one makes up for one that was missed.
const beatTime = 3 * time.Second

// beat says once a second that this process runs, until it stops. While it drains it leaves its shares of what services can take to the others, and what it
// may send to settlement, as soon as it has no part of them: that can last for minutes.
func (a *App) beat(ctx context.Context) {
	tick := time.NewTicker(replica.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			a.leave(ctx)
			return
		case <-tick.C:
		}
		if a.stopping.Load() && a.path.Unshown() == 0 && a.path.Gate().Retire() {
			a.leave(ctx)
			return
		}
		if err := a.beatOnce(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("heartbeat")
		}
		pulse.Beat(ctx, replica.Every)
	}
}

func (a *App) leave(ctx context.Context) {
	a.ready.Leave() // before the others count without us
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatTime)
	defer cancel()
	if err := (replica.Store{}).Leave(ctx, a.beats, a.path.Owner()); err != nil {
		a.log.Warn().Err(err).Msg("heartbeat")
	}
}

// beatOnce hears who else runs, and then says that this process runs and has heard it: what a service can take is divided among all, and how long a proof
// is used goes by what they send together. Whoever comes new waits for the heartbeats of the others, which say that they know of it.
func (a *App) beatOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTime)
	defer cancel()
	gate, self := a.path.Gate(), a.path.Owner()
	sent := gate.Now()
	alive, at, err := replica.Store{}.Alive(ctx, a.beats)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(alive, func(r replica.Replica) bool { return r.ID == self }) { // we are new, or were taken for dead
		if err := a.writeBeat(ctx, at); err != nil {
			return err
		}
		sent = gate.Now()
		if alive, at, err = (replica.Store{}).Alive(ctx, a.beats); err != nil {
			return err
		}
	}
	unproved, err := a.path.Unproved(ctx, a.beats)
	if err != nil {
		return err
	}
	a.ready.Heard(readiness.Reading{Sent: sent, At: at, Members: members(alive), Unproved: unproved})
	if err := a.writeBeat(ctx, at); err != nil {
		return err
	}
	a.ready.Beat(sent)
	all := make([]uuid.UUID, len(alive))
	for i, r := range alive {
		all[i] = r.ID
	}
	gate.Alive(sent, all)
	return nil
}

func (a *App) writeBeat(ctx context.Context, read time.Time) error {
	return replica.Store{}.Beat(ctx, a.beats, a.path.Owner(), a.door.Addr().String(), rowOf(a.terms), read)
}
