package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/config"
	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/readiness"
	"market/internal/refund"
)

const (
	// assetTime bounds the check of one network's assets at the start.
	assetTime = 30 * time.Second
	// headAgeMax is how old the newest block may be before the node counts as stuck.
	headAgeMax = 60 * time.Second
)

// A rail is one network with everything that settles and refunds on it.
type rail struct {
	network  chain.Network
	node     *chain.Node
	engine   *facilitator.Engine
	treasury chain.Key
	gas      common.Address
}

type rails []rail

// openRails connects to every configured network and refuses to start on a lie: a node of another chain, a token with another domain.
func (a *App) openRails(ctx, background context.Context, c config.Config) (rails, error) {
	treasury, gas, err := keys(c)
	if err != nil {
		return nil, err
	}
	var open rails
	for _, n := range c.Networks {
		r := rail{network: networkOf(n), treasury: treasury, gas: gas.Address()}
		if r.node, err = chain.Dial(ctx, r.network); err != nil {
			return nil, fmt.Errorf("network %s: %w", n.ID, err)
		}
		a.closers = append(a.closers, func(context.Context) error { r.node.Close(); return nil })
		if err := checkAssets(ctx, r); err != nil {
			return nil, fmt.Errorf("network %s: %w", n.ID, err)
		}
		r.engine, err = facilitator.NewEngine(r.node, a.db, gas, facilitator.Options{
			Treasuries: []common.Address{treasury.Address()},
			Report:     func(err error) { a.log.Warn().Err(err).Str("network", n.ID).Msg("settling engine") },
		})
		if err != nil {
			return nil, err
		}
		a.running.Go(func() { r.engine.Run(background) })
		open = append(open, r)
	}
	return open, nil
}

func checkAssets(ctx context.Context, r rail) error {
	checking, cancel := context.WithTimeout(ctx, assetTime)
	defer cancel()
	var errs []error
	for _, asset := range r.network.Assets {
		errs = append(errs, r.node.CheckAsset(checking, asset))
	}
	return errors.Join(errs...)
}

// keys opens the treasury's key, which holds callers' money, and the gas key, which holds none.
func keys(c config.Config) (treasury, gas chain.Key, err error) {
	treasury, treasuryErr := openKey("MARKET_TREASURY", c.Treasury)
	gas, gasErr := openKey("MARKET_GAS", c.Gas)
	if err := errors.Join(treasuryErr, gasErr); err != nil {
		return chain.Key{}, chain.Key{}, err
	}
	if treasury.Address() == gas.Address() {
		return chain.Key{}, chain.Key{}, errors.New("MARKET_TREASURY and MARKET_GAS are one key: the key that holds callers' money must not sign transactions")
	}
	return treasury, gas, nil
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
		ID: n.ID, ChainID: n.ChainID, V1Name: n.V1Name, RPC: n.RPC, Confirmations: n.Confirmations, ServeAtDepth: n.ServeAtDepth,
		Explorer: n.Explorer, FloorUSD: n.FloorUSD,
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
		out = append(out, delivery.Rail{Network: r.network, Node: r.node, Chain: r.node, Settler: r.engine, Treasury: r.treasury.Address(),
			Gas: r.gas})
	}
	return out
}

// refund returns what pays refunds on each rail.
func (rs rails) refund() map[string]refund.Rail {
	out := map[string]refund.Rail{}
	for _, r := range rs {
		out[r.network.ID] = refund.Rail{Network: r.network, Node: r.node, Sender: r.engine, Treasury: r.treasury}
	}
	return out
}

// checks returns the direct readiness check of each network: its head moves, and the gas key can pay for settlements and refunds.
func (rs rails) checks() map[string]readiness.Check {
	out := map[string]readiness.Check{}
	for _, r := range rs {
		out[r.network.ID] = func(ctx context.Context) error {
			head, err := r.node.FreshHead(ctx)
			if err != nil {
				return err
			}
			if age := time.Since(time.Unix(int64(head.Time), 0)); age > headAgeMax { //nolint:gosec // seconds, range-checked by chain
				return fmt.Errorf("the newest block is %s old", age.Truncate(time.Second))
			}
			return r.engine.Ready(ctx)
		}
	}
	return out
}

// rules returns what a listing has to keep to: a price that every asset can express and that covers every network's floor.
func (rs rails) rules(dev bool) catalog.Rules {
	rules := catalog.Rules{AllowPrivate: dev}
	for _, r := range rs {
		for _, asset := range r.network.Assets {
			rules.Assets = append(rules.Assets, catalog.AssetRule{Decimals: asset.Decimals, FloorUSD: r.network.FloorUSD})
		}
	}
	return rules
}
