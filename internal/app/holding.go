package app

import (
	"context"

	"market/internal/delivery"
)

func (a *App) holder() *delivery.Holder { return delivery.NewHolder(a.db, delivery.HoldingRule) }

// hold takes services off the shelf that are to be looked at first, until ctx ends, and tells the operator of each.
func (a *App) hold(ctx context.Context) {
	a.holder().Run(ctx, a.tellHeld, func(err error) { a.log.Error().Err(err).Msg("holding services for review") })
}

func (a *App) tellHeld(n delivery.HeldNotice) {
	line := a.log.Warn().Bool("over", n.Over).Str("notice", n.Text)
	if n.Service == "" {
		line.Msg("too many services to hold")
		return
	}
	line.Str("service", n.Service).Msg("service held for review")
}
