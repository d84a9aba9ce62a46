package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/readiness"
)

// An authority is whatever permits us to take money on one network and to give it back: the chain, its assets, and who settles there.
type authority struct {
	db   *pgxpool.Pool
	node *chain.Node
	// treasury receives and gives back. Zero: who settles for others alone holds nothing and owes nothing.
	treasury common.Address
	// settles asks whoever settles there, and returns for how long they let their answer be used. A definite no is a *readiness.Denied.
	settles func(ctx context.Context) (validFor time.Duration, err error)
}

// checks are the looks that readiness keeps of each network.
func (rs rails) checks(db *pgxpool.Pool) map[string]readiness.Check {
	out := map[string]readiness.Check{}
	for _, r := range rs {
		out[r.network.ID] = authority{db: db, node: r.node, treasury: r.treasury.Address(), settles: r.failover.Look}.look
	}
	return out
}

// deskCheck is the look of a program that settles for others by its own engine.
func deskCheck(node *chain.Node, engine *facilitator.Engine) readiness.Check {
	settles := func(ctx context.Context) (time.Duration, error) { return 0, engine.Ready(ctx) }
	return authority{node: node, settles: settles}.look
}

// look asks everything at once. It is one round trip to a node for the chain and its assets, one for the engine that pays gas, one to each facilitator that is
// not ours, and two statements.
func (a authority) look(ctx context.Context) readiness.Finding {
	var (
		asking   sync.WaitGroup
		validFor time.Duration
		settles  error
	)
	asking.Go(func() { validFor, settles = a.settles(ctx) })
	both, refunds := a.ground(ctx)
	asking.Wait()
	return readiness.Finding{Settle: conclude(both, settles), Refund: conclude(both, refunds, settles), ValidFor: validFor}
}

// ground looks at the chain and at what the treasury holds there. both is what neither can be done for, refunds what only nothing can be given back for.
func (a authority) ground(ctx context.Context) (both, refunds error) {
	if err := a.node.Check(ctx); err != nil {
		return ofChain(err, chain.Lies(err)), nil
	}
	standing, err := a.node.Standing(ctx, a.treasury)
	if err != nil {
		return ofChain(err, chain.Denies(err)), nil
	}
	return a.permits(standing), a.solvent(ctx, standing)
}

// ofChain marks a definite no of the chain.
func ofChain(err error, definite bool) error {
	if definite {
		return &readiness.Denied{Why: err}
	}
	return err
}

// permits says what the assets themselves have against it. A network is all of its assets: which of them a caller pays with is the caller's choice.
func (a authority) permits(s chain.Standing) error {
	var errs []error
	for _, asset := range s.Assets {
		if asset.Paused {
			errs = append(errs, readiness.Deny("%s (%s) on %s is paused by its issuer: nothing can be paid or given back in it", asset.Symbol, asset.Address, a.node.Network().ID))
		}
		if asset.Blocked && a.treasury != (common.Address{}) {
			errs = append(errs, readiness.Deny("the issuer of %s (%s) on %s has the treasury %s on its blocklist: it can neither be paid nor give anything back in it",
				asset.Symbol, asset.Address, a.node.Network().ID, a.treasury))
		}
	}
	return conclude(errs...)
}

// solvent says whether the treasury holds what it owes, of what the view of the chain is known to have.
func (a authority) solvent(ctx context.Context, s chain.Standing) error {
	network := a.node.Network()
	if a.treasury == (common.Address{}) {
		return nil
	}
	all, err := delivery.LiabilitiesOf(ctx, a.db, network.ID, s.Sure)
	if err != nil {
		return err
	}
	var errs []error
	for _, asset := range s.Assets {
		purse := delivery.Purse{Network: network.ID, Asset: asset.Address, Treasury: a.treasury, Holds: asset.Holds, Block: s.Sure}
		owed, short, err := delivery.Short(ctx, a.db, a.node, purse, delivery.OwedBy(all, network.ID, asset.Address, a.treasury))
		switch {
		case err != nil:
			errs = append(errs, err)
		case short:
			errs = append(errs, readiness.Deny("the treasury %s on %s holds %s and owes %s: no refund can be promised before it holds as much", a.treasury, network.ID,
				asset.Sum(asset.Holds), asset.Sum(owed.Owed())))
		}
	}
	return conclude(errs...)
}

// conclude makes one answer of several. A definite no is one whatever else was unclear, and only what is definite is told then.
func conclude(errs ...error) error {
	var noes []error
	for _, err := range errs {
		if _, no := errors.AsType[*readiness.Denied](err); no {
			noes = append(noes, err)
		}
	}
	if len(noes) > 0 {
		return &readiness.Denied{Why: errors.Join(noes...)}
	}
	return errors.Join(errs...)
}
