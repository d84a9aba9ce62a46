package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/postgres"
)

const (
	// startTime bounds what is asked of one network at the start.
	startTime = 30 * time.Second
	// clockMax is how far the clock of this machine may be from the chain's at the start.
	clockMax = 60 * time.Second
)

// A start refuses to run on a lie: what the configuration says and the chain, the database or another part of the configuration says otherwise. Whoever
// does not answer has not lied: what it would have said is asked again before its network counts as ready. Each lie is one sentence, and all are told at once.
type start struct {
	db      *pgxpool.Pool
	now     func() time.Time
	dev     bool
	log     zerolog.Logger
	wallets []wallet
}

// A wallet is an account of ours, and the variable that its key is from.
type wallet struct {
	name    string
	address common.Address
	retired bool // it receives nothing any more
	sends   bool // transactions; the others sign authorizations
}

// wallets are all that we sign with: whoever settles for others alone has no treasury, and where nobody settles here there is no gas wallet.
func (k keys) wallets() []wallet {
	var all []wallet
	if treasury := k.treasury.Address(); treasury != (common.Address{}) {
		all = append(all, wallet{name: treasuryName, address: treasury})
	}
	for _, r := range k.retired {
		all = append(all, wallet{name: retiredName, address: r.Address(), retired: true})
	}
	if gas := k.gas.Address(); gas != (common.Address{}) {
		all = append(all, wallet{name: gasName, address: gas, sends: true})
	}
	return all
}

// lies returns what is wrong with the wallets and the networks.
func (s start) lies(ctx context.Context, nodes []*chain.Node) error {
	networks := make([]chain.Network, len(nodes))
	for i, n := range nodes {
		networks[i] = n.Network()
	}
	found := make([]error, len(nodes))
	var asking sync.WaitGroup
	for i, n := range nodes {
		asking.Go(func() { found[i] = s.network(ctx, n) })
	}
	asking.Wait()
	return errors.Join(walletLies(s.wallets, networks), s.payers(ctx), errors.Join(found...))
}

// walletLies says which wallets are something else as well.
func walletLies(wallets []wallet, networks []chain.Network) error {
	var errs []error
	for _, w := range wallets {
		for _, other := range wallets {
			if w.sends && !other.sends && w.address == other.address {
				errs = append(errs, fmt.Errorf("%s is the key of a treasury (%s, %s): a key that holds callers' money must not sign transactions", w.name, other.name, w.address))
			}
		}
		for _, n := range networks {
			if asset, is := n.Asset(w.address); is {
				errs = append(errs, fmt.Errorf("%s is the key of %s, which MARKET_NETWORKS names as the asset %s of %s: an asset is a contract, and nobody has its key",
					w.name, w.address, asset.Symbol, n.ID))
			}
		}
	}
	return errors.Join(errs...)
}

// payers says which wallets have paid for calls here, as callers do: their keys are in somebody's hands who buys. Where the database does not say there is
// no more of the start anyway.
func (s start) payers(ctx context.Context) error {
	var errs []error
	for _, w := range s.wallets {
		if w.retired {
			continue
		}
		paid, err := delivery.HasPaid(ctx, s.db, w.address)
		if err != nil {
			return err
		}
		if paid {
			errs = append(errs, fmt.Errorf("%s is the key of %s, which has paid for calls here as a caller: whoever buys with it can move what it holds, so use a key of its own",
				w.name, w.address))
		}
	}
	return errors.Join(errs...)
}

// network returns what is a lie about one network: of its nodes, its assets, our wallets there, or the clocks.
func (s start) network(ctx context.Context, node *chain.Node) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	id := node.Network().ID
	err := node.Check(ctx)
	switch {
	case chain.Lies(err):
		return err
	case err != nil:
		s.log.Error().Err(err).Str("network", id).Msg("network cannot be checked: no payment is taken on it until it can")
		return nil
	}
	contracts, err := s.contracts(ctx, node)
	if err != nil {
		s.log.Warn().Err(err).Str("network", id).Msg("it could not be asked whether our wallets are contracts")
	}
	clock, err := s.clock(ctx, node)
	if err != nil {
		s.log.Warn().Err(err).Str("network", id).Msg("the clocks could not be compared")
	}
	return errors.Join(contracts, clock)
}

// contracts says which wallets have code on a network.
func (s start) contracts(ctx context.Context, node *chain.Node) (lie, err error) {
	addresses := make([]common.Address, len(s.wallets))
	for i, w := range s.wallets {
		addresses[i] = w.address
	}
	have, err := node.HaveCode(ctx, addresses)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, w := range s.wallets {
		switch {
		case !have[i]:
		case w.retired: // what it owes waits until it has taken that back, which stops nobody else's calls
			s.log.Error().Str("network", node.Network().ID).Str("treasury", w.address.Hex()).Msg("a retired treasury is a contract there, or has delegated to one: its refunds cannot be paid")
		default:
			errs = append(errs, w.contract(node.Network().ID))
		}
	}
	return errors.Join(errs...), nil
}

// contract says why a wallet must not have code.
func (w wallet) contract(network string) error {
	if w.sends {
		return fmt.Errorf("%s is the key of %s, which is a contract on %s, or has delegated to one: nodes take one transaction at a time from such an account, so settlements would "+
			"wait for each other; use a key that has not", w.name, w.address, network)
	}
	return fmt.Errorf("%s is the key of %s, which is a contract on %s, or has delegated to one: an asset asks the contract and not the key whether a refund is signed, so none "+
		"could be paid; use a key that has not", w.name, w.address, network)
}

// clock compares this machine's clock with the chain's and the database's.
func (s start) clock(ctx context.Context, node *chain.Node) (lie, err error) {
	head, err := node.FreshHead(ctx)
	if err != nil {
		return nil, err
	}
	t := times{own: s.now(), chain: time.Unix(int64(head.Time), 0)} //nolint:gosec // seconds, range-checked by chain
	if t.database, err = postgres.ServerNow(ctx, s.db); err != nil {
		return nil, err
	}
	return t.lie(node.Network().ID, s.dev), nil
}

// times are what three clocks showed at one moment.
type times struct{ own, chain, database time.Time }

func apart(a, b time.Time) bool { return a.Sub(b).Abs() > clockMax }

// lie says that this machine's clock is wrong. A block is never of the future, so a clock that is behind the newest one is wrong whatever the database's says;
// but a development chain runs ahead of everybody's. A clock that is ahead of it may be right, and the chain stand still: then the database decides.
func (t times) lie(network string, dev bool) error {
	ahead := t.own.Sub(t.chain)
	borneOut := apart(t.own, t.database) && !apart(t.chain, t.database)
	switch {
	case ahead < -clockMax && (borneOut || !dev):
		return t.wrong(network, -ahead, "behind")
	case ahead > clockMax && borneOut:
		return t.wrong(network, ahead, "ahead of")
	}
	return nil
}

func (t times) wrong(network string, by time.Duration, where string) error {
	const form = "2006-01-02 15:04:05 UTC"
	database := "the database's clock agrees with the chain"
	if apart(t.chain, t.database) {
		database = "the database's clock says " + t.database.UTC().Format(form)
	}
	return fmt.Errorf("the clock of this machine says %s, which is %s %s the newest block of %s, and %s: set the clock of this machine (NTP) and start again",
		t.own.UTC().Format(form), by.Truncate(time.Second), where, network, database)
}
