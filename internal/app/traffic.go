package app

import (
	"context"
	"time"

	"market/internal/delivery"
)

const (
	trafficEvery = time.Minute
	trafficTime  = 10 * time.Second // for one look
)

// watchTraffic tells the operator where nearly all traffic is our own, or nobody's, until the program stops: strikes are only as good as what they
// are counted from.
func (a *App) watchTraffic(ctx context.Context) {
	a.lookAtTraffic(ctx)
	delivery.Every(ctx, trafficEvery, a.lookAtTraffic)
}

func (a *App) lookAtTraffic(ctx context.Context) {
	looking, cancel := context.WithTimeout(ctx, trafficTime)
	defer cancel()
	told, err := delivery.WatchTraffic(looking, a.db)
	for _, n := range told {
		if n.Over {
			a.log.Info().Str("notice", string(n.Kind)).Msg(n.Text)
			continue
		}
		a.log.Warn().Str("notice", string(n.Kind)).Msg(n.Text)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Error().Err(err).Msg("traffic")
	}
}
