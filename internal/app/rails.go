package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/config"
	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/payment"
	"market/internal/readiness"
	"market/internal/refund"
)

const (
	// assetTime bounds the check of one network and its assets at the start.
	assetTime = 30 * time.Second
	// headAgeMax is how old the newest block may be before the node counts as stuck.
	headAgeMax = 60 * time.Second
)

// A rail is one network with everything that settles and refunds on it.
type rail struct {
	network  chain.Network
	node     *chain.Node
	nodes    []string            // what it is made of: names of sources
	engine   *facilitator.Engine // nil where only others settle
	failover *facilitator.Failover
	settler  delivery.Settler // of callers' payments
	words    delivery.Words   // nil where no facilitator is believed before there is a proof
	sender   refund.Sender    // of refunds
	treasury chain.Key
	retired  []chain.Key    // treasuries before this one, which still give back what they received
	gas      common.Address // zero where no facilitator is local
}

type rails []rail

// openRails opens every configured network. It refuses to start on a lie of a node, and not because none answers.
func (a *App) openRails(ctx, background context.Context, c config.Config) (rails, error) {
	k, err := keysOf(c)
	if err != nil {
		return nil, err
	}
	others, err := a.openRemotes(ctx, background, c)
	if err != nil {
		return nil, err
	}
	var open rails
	for _, n := range c.Networks {
		r := rail{network: networkOf(n), nodes: nodeNames(n), treasury: k.treasury, retired: k.retired, gas: k.gas.Address()}
		if r.node, err = openNode(n, a.sources, a.log); err != nil {
			return nil, fmt.Errorf("network %s: %w", n.ID, err)
		}
		a.closers = append(a.closers, func(context.Context) error { r.node.Close(); return nil })
		if err := checkNode(ctx, r.node, a.log); err != nil {
			return nil, fmt.Errorf("network %s: %w", n.ID, err)
		}
		if err := a.openFacilitators(background, c, &r, k.gas, others); err != nil {
			return nil, fmt.Errorf("network %s: %w", n.ID, err)
		}
		r.settler, r.words, r.sender = a.wraps.around(r)
		open = append(open, r)
	}
	return open, nil
}

// openFacilitators starts our engine where it is configured, and puts it in line with the others.
func (a *App) openFacilitators(background context.Context, c config.Config, r *rail, gas chain.Key, others remotes) (err error) {
	if slices.ContainsFunc(c.For(r.network.ID), func(f config.Facilitator) bool { return f.Kind == config.KindLocal }) {
		r.engine, err = facilitator.NewEngine(r.node, a.db, gas, facilitator.Options{
			Treasuries: r.treasuries(),
			Report:     func(err error) { a.log.Warn().Err(err).Str("network", r.network.ID).Msg("settling engine") },
		})
		if err != nil {
			return err
		}
		a.loop(background, "engine/"+r.network.ID, r.engine.Run)
	}
	links, err := a.link(c, r, others)
	if err != nil {
		return err
	}
	r.failover = facilitator.NewFailover(r.node, r.treasuries(), links, time.Now)
	return nil
}

// treasuries returns every address of ours that callers' money is, or was, paid to.
func (r rail) treasuries() []common.Address {
	all := []common.Address{r.treasury.Address()}
	for _, k := range r.retired {
		all = append(all, k.Address())
	}
	return all
}

// keys are what this program signs with: the treasuries, which hold callers' money, and the gas key, which holds none.
type keys struct {
	treasury, gas chain.Key
	retired       []chain.Key
}

func keysOf(c config.Config) (k keys, err error) {
	var treasuryErr, gasErr, retiredErr error
	k.treasury, treasuryErr = openKey("MARKET_TREASURY", c.Treasury)
	if c.SettlesItself() {
		k.gas, gasErr = openKey("MARKET_GAS", c.Gas)
	}
	k.retired, retiredErr = openRetired(c.Retired)
	if err := errors.Join(treasuryErr, gasErr, retiredErr); err != nil {
		return keys{}, err
	}
	for _, t := range append([]chain.Key{k.treasury}, k.retired...) {
		if t.Address() == k.gas.Address() {
			return keys{}, errors.New("MARKET_GAS is the key of a treasury: a key that holds callers' money must not sign transactions")
		}
	}
	return k, nil
}

func openRetired(r config.RetiredKeys) ([]chain.Key, error) {
	const name = "MARKET_TREASURY_RETIRED"
	var (
		open []chain.Key
		errs []error
	)
	for _, file := range r.Keystores {
		key, err := openKey(name, config.Key{Keystore: file.Keystore, PasswordFile: file.PasswordFile})
		open, errs = append(open, key), append(errs, err)
	}
	for _, bare := range r.Bare() {
		key, err := chain.ParseKey(bare)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		open, errs = append(open, key), append(errs, err)
	}
	return open, errors.Join(errs...)
}

func openKey(name string, k config.Key) (chain.Key, error) {
	var (
		key chain.Key
		err error
	)
	if k.Keystore != "" {
		key, err = chain.OpenKeystore(k.Keystore, k.PasswordFile)
	} else {
		key, err = chain.ParseKey(k.Raw.Reveal())
	}
	if err != nil {
		return chain.Key{}, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

func networkOf(n config.Network) chain.Network {
	out := chain.Network{
		ID: n.ID, ChainID: n.ChainID, V1Name: n.V1Name, Confirmations: n.Confirmations, ServeAtDepth: n.ServeAtDepth,
		Explorer: n.Explorer, FloorUSD: n.FloorUSD,
	}
	for _, node := range n.RPC {
		out.RPC = append(out.RPC, node.URL)
	}
	for _, a := range n.Assets {
		out.Assets = append(out.Assets, chain.Asset{Address: common.HexToAddress(a.Address), Symbol: a.Symbol, Decimals: a.Decimals,
			EIP712Name: a.EIP712Name, EIP712Version: a.EIP712Version})
	}
	return out
}

func (rs rails) networks() []chain.Network {
	var out []chain.Network
	for _, r := range rs {
		out = append(out, r.network)
	}
	return out
}

// delivery returns what the paid path needs of each rail.
func (rs rails) delivery() []delivery.Rail {
	var out []delivery.Rail
	for _, r := range rs {
		wallets := r.treasuries()
		if r.gas != (common.Address{}) {
			wallets = append(wallets, r.gas)
		}
		out = append(out, delivery.Rail{Network: r.network, Node: r.node, Chain: r.node, Settler: r.settler, Units: r.failover, Words: r.words, Treasury: r.treasury.Address(),
			Ours: wallets, Gas: r.gas})
	}
	return out
}

// refund returns what pays refunds on each rail; proved hears of each that was put on the chain.
func (rs rails) refund(proved func(network string, began time.Time)) map[string]refund.Rail {
	out := map[string]refund.Rail{}
	for _, r := range rs {
		sender := proving{r.sender, func(began time.Time) { proved(r.network.ID, began) }}
		out[r.network.ID] = refund.Rail{Network: r.network, Node: r.node, Sender: sender, Units: refundUnits{r.failover},
			Treasuries: refund.Treasuries(append([]chain.Key{r.treasury}, r.retired...)...)}
	}
	return out
}

// refundUnits are the units of a network as refunds use them.
type refundUnits struct{ *facilitator.Failover }

// Limited says why no refund can be sent now whose unit was set aside with a source.
func (u refundUnits) Limited(unitOf string) error { return u.LimitedToRefund(unitOf) }

// Reserve sets one aside for a refund.
func (u refundUnits) Reserve(ctx context.Context, unitOf string) (refund.Reservation, error) {
	reserved, err := u.ReserveRefund(ctx, unitOf)
	if err != nil {
		return nil, err
	}
	return reserved, nil
}

// limited says from memory why nobody settles on a network now; nil where somebody does.
func (rs rails) limited(network string) error {
	for _, r := range rs {
		if r.network.ID == network {
			return r.failover.Limited()
		}
	}
	return nil
}

// notary signs what the treasuries say: receipts, and the terms of calls.
func (rs rails) notary() payment.Notary {
	var keys []chain.Key
	for _, r := range rs {
		keys = append(append(keys, r.treasury), r.retired...)
	}
	return payment.NewNotary(keys...)
}

// checks returns the direct readiness check of each network: it is the one that is configured, its head moves, and a facilitator can settle and refund: our engine whose gas
// key can pay for it, or another one that has said so a moment ago.
func (rs rails) checks() map[string]readiness.Check {
	out := map[string]readiness.Check{}
	for _, r := range rs {
		out[r.network.ID] = checkOf(r.node, r.failover.Ready)
	}
	return out
}

// checkOf is the check of a network on which somebody settles.
func checkOf(node *chain.Node, settles func(context.Context) error) readiness.Check {
	return func(ctx context.Context) readiness.Finding {
		if err := node.Check(ctx); err != nil {
			return readiness.Whole(err)
		}
		head, err := node.FreshHead(ctx)
		if err != nil {
			return readiness.Whole(err)
		}
		if age := time.Since(time.Unix(int64(head.Time), 0)); age > headAgeMax { //nolint:gosec // seconds, range-checked by chain
			return readiness.Whole(fmt.Errorf("the newest block is %s old", age.Truncate(time.Second)))
		}
		return readiness.Whole(settles(ctx))
	}
}

// rules returns what a listing has to keep to: a price that every asset can express and that reaches the floor of a network.
func (rs rails) rules(dev bool, own []string) catalog.Rules {
	rules := catalog.Rules{AllowPrivate: dev, Own: own}
	for _, r := range rs {
		for _, asset := range r.network.Assets {
			rules.Assets = append(rules.Assets, catalog.AssetRule{Network: r.network.ID, Decimals: asset.Decimals, FloorUSD: r.network.FloorUSD})
		}
	}
	return rules
}
