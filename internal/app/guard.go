package app

import (
	"context"
	"time"

	"market/internal/delivery"
)

const (
	// guardEvery is how often outages of our own are looked for; guardTime bounds one look.
	guardEvery = time.Second
	guardTime  = 10 * time.Second
)

// guardOn looks for outages of our own until the process stops, and tells the operator of what it finds.
func (a *App) guardOn(ctx context.Context) {
	delivery.Every(ctx, guardEvery, func(ctx context.Context) {
		if err := a.guardOnce(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn().Err(err).Msg("look for an outage of ours")
		}
	})
}

func (a *App) guardOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	a.canaries.Again(ctx, a.guard.Suspects())
	told, err := a.guard.Tick(ctx, delivery.SoundingsOf(a.canaries))
	for _, t := range told {
		event := a.log.Error()
		if t.Over {
			event = a.log.Info()
		}
		event.Str("outage", t.Outage.ID.String()).Str("of", t.Outage.Subject()).Msg(t.Text)
	}
	return err
}
