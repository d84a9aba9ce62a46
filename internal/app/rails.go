package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/config"
	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/payment"
	"market/internal/payout"
	"market/internal/refund"
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

// openRails opens every configured network. It refuses to start on a lie, and not because nobody answers: see start.
func (a *App) openRails(ctx, background context.Context, c config.Config) (rails, error) {
	k, keysErr := keysOf(c)
	open, nodesErr := a.openNodes(c.Networks)
	others, othersErr := a.openRemotes(ctx, background, c)
	errs := []error{keysErr, nodesErr, othersErr}
	s := start{db: a.db, now: a.now, dev: c.Dev, log: a.log}
	if keysErr == nil {
		s.wallets = k.wallets()
	}
	if nodesErr == nil {
		errs = append(errs, s.lies(ctx, open.nodes()))
	}
	if othersErr == nil {
		for _, n := range c.Networks {
			errs = append(errs, a.supported(c, networkOf(n), others))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range open {
		r := &open[i]
		r.treasury, r.retired, r.gas = k.treasury, k.retired, k.gas.Address()
		if err := a.openFacilitators(background, c, r, k.gas, others); err != nil {
			return nil, fmt.Errorf("network %s: %w", r.network.ID, err)
		}
		r.settler, r.words, r.sender = a.wraps.around(*r)
	}
	return open, nil
}

// openNodes opens the nodes of every network, and asks none of them anything.
func (a *App) openNodes(networks []config.Network) (rails, error) {
	var (
		open rails
		errs []error
	)
	for _, n := range networks {
		node, err := openNode(n, a.sources, a.log)
		if err != nil {
			errs = append(errs, fmt.Errorf("network %s: %w", n.ID, err))
			continue
		}
		a.closers = append(a.closers, func(context.Context) error { node.Close(); return nil })
		open = append(open, rail{network: networkOf(n), nodes: nodeNames(n), node: node})
	}
	return open, errors.Join(errs...)
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
	r.failover = facilitator.NewFailover(r.node, r.treasuries(), links(c, r, others), time.Now)
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

// wallets returns every address of ours: the treasuries, and what pays gas.
func (r rail) wallets() []common.Address {
	all := r.treasuries()
	if r.gas != (common.Address{}) {
		all = append(all, r.gas)
	}
	return all
}

// keys are what this program signs with: the treasuries, which hold callers' money, and the gas key, which holds none.
type keys struct {
	treasury, gas chain.Key
	retired       []chain.Key
}

// Names of the variables that keys are from, without the part that says in which form.
const (
	treasuryName = "MARKET_TREASURY"
	retiredName  = "MARKET_TREASURY_RETIRED"
	gasName      = "MARKET_GAS"
)

func keysOf(c config.Config) (k keys, err error) {
	var treasuryErr, gasErr, retiredErr error
	k.treasury, treasuryErr = openKey(treasuryName, c.Treasury)
	if c.SettlesItself() {
		k.gas, gasErr = openKey(gasName, c.Gas)
	}
	k.retired, retiredErr = openRetired(c.Retired)
	if err := errors.Join(treasuryErr, gasErr, retiredErr); err != nil {
		return keys{}, err
	}
	return k, nil
}

func openRetired(r config.RetiredKeys) ([]chain.Key, error) {
	var (
		open []chain.Key
		errs []error
	)
	for _, file := range r.Keystores {
		key, err := openKey(retiredName, config.Key{Keystore: file.Keystore, PasswordFile: file.PasswordFile})
		open, errs = append(open, key), append(errs, err)
	}
	for _, bare := range r.Bare() {
		key, err := chain.ParseKey(bare)
		if err != nil {
			err = fmt.Errorf("%s: %w", retiredName, err)
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

func (rs rails) nodes() []*chain.Node {
	var out []*chain.Node
	for _, r := range rs {
		out = append(out, r.node)
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
		out = append(out, delivery.Rail{Network: r.network, Node: r.node, Chain: r.node, Settler: r.settler, Units: r.failover, Words: r.words, Treasury: r.treasury.Address(),
			Ours: r.wallets(), Gas: r.gas})
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

// payout returns what pays providers on each rail.
func (rs rails) payout(db *pgxpool.Pool) map[string]payout.Rail {
	out := map[string]payout.Rail{}
	for _, r := range rs {
		out[r.network.ID] = payout.Rail{Network: r.network, Node: r.node, Sender: r.sender, Funds: funds{db, r.node}, Units: payoutUnits{r.failover},
			Treasuries: refund.Treasuries(append([]chain.Key{r.treasury}, r.retired...)...), Ours: r.wallets()}
	}
	return out
}

// funds says whether a treasury of a network has what it owes, of what the view of the chain is known to have.
type funds struct {
	db   *pgxpool.Pool
	node *chain.Node
}

func (f funds) Short(ctx context.Context, asset, treasury common.Address) (bool, error) {
	s, err := f.node.Standing(ctx, treasury)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(s.Assets, func(a chain.AssetStanding) bool { return a.Address == asset })
	if i < 0 {
		return false, fmt.Errorf("asset %s is not configured any more", asset)
	}
	id := f.node.Network().ID
	all, err := delivery.LiabilitiesOf(ctx, f.db, id, s.Sure)
	if err != nil {
		return false, err
	}
	purse := delivery.Purse{Network: id, Asset: asset, Treasury: treasury, Holds: s.Assets[i].Holds, Block: s.Sure}
	_, short, err := delivery.Short(ctx, f.db, f.node, purse, delivery.OwedBy(all, id, asset, treasury))
	return short, err
}

// payoutUnits are the units of a network as payouts use them.
type payoutUnits struct{ *facilitator.Failover }

// Reserve sets one aside for a payout.
func (u payoutUnits) Reserve(ctx context.Context) (sending context.Context, end func(), err error) {
	reserved, err := u.ReservePayout(ctx)
	if err != nil {
		return nil, nil, err
	}
	return reserved.In(ctx), reserved.End, nil
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
