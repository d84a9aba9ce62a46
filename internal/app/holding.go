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
	a.log.Warn().Str("service", n.Service).Bool("over", n.Over).Str("notice", n.Text).Msg("service held for review")
}
