package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"market/internal/replica"
)

// beatTime bounds one heartbeat; a later one makes up for one that was missed.
const beatTime = 3 * time.Second

// beat says once a second that this process runs, until it stops.
func (a *App) beat(ctx context.Context, id uuid.UUID, address string) {
	var store replica.Store
	tick := time.NewTicker(replica.Every)
	defer tick.Stop()
	for {
		beating, cancel := context.WithTimeout(ctx, beatTime)
		if err := store.Beat(beating, a.db, id, address); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("heartbeat")
		}
		cancel()
		select {
		case <-ctx.Done():
			leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), beatTime)
			defer cancel()
			if err := store.Leave(leaving, a.db, id); err != nil {
				a.log.Warn().Err(err).Msg("heartbeat")
			}
			return
		case <-tick.C:
		}
	}
}
