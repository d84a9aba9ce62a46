package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"market/internal/pulse"
	"market/internal/replica"
)

// beatTime bounds one heartbeat; a later one makes up for one that was missed.
const beatTime = 3 * time.Second

// beat says once a second that this process runs, until it stops. While it drains it leaves its shares of what services can take to the others as soon as
// it has no part of them: that can last for minutes.
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
		if a.stopping.Load() && a.path.Gate().Retire() {
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatTime)
	defer cancel()
	if err := (replica.Store{}).Leave(ctx, a.db, a.path.Owner()); err != nil {
		a.log.Warn().Err(err).Msg("heartbeat")
	}
}

// beatOnce says that this process runs, and hears who else does: what a service can take is divided among them.
func (a *App) beatOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatTime)
	defer cancel()
	var store replica.Store
	gate := a.path.Gate()
	sent := gate.Now()
	if err := store.Beat(ctx, a.db, a.path.Owner(), a.door.Addr().String()); err != nil {
		return err
	}
	alive, err := store.Alive(ctx, a.db)
	if err != nil {
		return err
	}
	members := make([]uuid.UUID, len(alive))
	for i, r := range alive {
		members[i] = r.ID
	}
	gate.Alive(sent, members)
	return nil
}
