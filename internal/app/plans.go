package app

import (
	"context"

	"github.com/google/uuid"

	"market/internal/identity"
	"market/internal/plan"
)

// planOf names the plan of an account that owns services. One that the board does not know yet, for a moment after its first listing, has the first plan.
func (a *App) planOf(account uuid.UUID) string {
	owner, _ := a.owners.Owner(account)
	return owner.Plan
}

// sayPlansLeft warns of accounts whose plan is not in the table any more: they have the first one meanwhile.
func (a *App) sayPlansLeft(ctx context.Context, plans plan.Table) error {
	left, err := identity.Store{}.PlansLeft(ctx, a.db, plans.Names())
	if err != nil {
		return err
	}
	for name, accounts := range left {
		a.log.Warn().Str("plan", name).Int("accounts", accounts).Str("instead", plans.Of(name).Name).Msg("accounts are on a plan that there is not (any more)")
	}
	return nil
}
