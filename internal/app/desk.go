package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/rs/zerolog"

	"market/internal/chain"
	"market/internal/config"
	"market/internal/delivery"
	"market/internal/desk"
	"market/internal/facilitator"
	"market/internal/metrics"
	"market/internal/readiness"
	"market/internal/server"
	"market/internal/source"
)

// Desk is the running facilitator of `market facilitator`: our engine for other people's payments, and nothing else of the marketplace.
type Desk struct {
	process
	sources *source.Registry
}

// StartDesk builds everything and starts it; ctx bounds the start alone. When it returns, the doors are open. The caller stops the desk.
func StartDesk(ctx context.Context, c config.Desk, log zerolog.Logger) (*Desk, error) {
	d := &Desk{}
	if err := d.start(ctx, c, log); err != nil {
		own, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer done()
		return nil, errors.Join(err, d.Stop(own))
	}
	return d, nil
}

func (d *Desk) start(ctx context.Context, c config.Desk, log zerolog.Logger) error {
	background := d.begin(ctx, log)
	gas, err := openKey(gasName, c.Gas)
	if err != nil {
		return err
	}
	if _, err := d.openDatabase(ctx, c.Database, c.Dev); err != nil {
		return err
	}
	if err := d.listen(ctx, c.Listen, c.OpsListen); err != nil {
		return err
	}
	if err := d.openSources(ctx, background, c.Networks); err != nil {
		return err
	}
	keys := deskKeys(c.Keys)
	open, checks, err := d.openRails(ctx, background, c, gas, desk.Recipients(keys))
	if err != nil {
		return err
	}
	door := desk.New(desk.Config{DB: d.db, Rails: open, Keys: keys, Signer: gas.Address().Hex(), Log: log})
	d.running.Go(func() { door.Tidy(background) })
	ready := readiness.New(checks, readiness.Options{Fixed: readyAge, Alone: true, Limit: readyTime, Changed: d.readyChanged})
	for _, network := range ready.Networks() {
		d.running.Go(func() { ready.Refresh(background, network) })
	}
	firstLook(ctx, ready)
	d.open(door.Public(), server.New(server.Config{Ready: ready, Log: log, Now: now, Stopping: d.stopping.Load,
		Metrics: metrics.New(nil).Handler()}).Ops()) // of the process alone: a serve on this database shows how its sources stand
	return nil
}

// openSources keeps count of what the nodes are asked, together with every program that uses the same database. A node that a `market serve` uses as well
// is one account and one row: what this process finds out, that one never would, so the notices are raised here too. The serve sends them; without one they
// are in the log, which whoever runs this one reads.
func (d *Desk) openSources(ctx, background context.Context, networks []config.Network) error {
	k := newKeeper(d.db, d.log)
	d.sources = source.New(d.db, now, k.nodes(networks), k.hooks())
	load := func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, loadTime)
		defer cancel()
		return d.sources.Load(limited, d.db)
	}
	if err := load(ctx); err != nil {
		return fmt.Errorf("load sources: %w", err)
	}
	d.running.Go(func() { d.sources.Run(background) })
	d.running.Go(func() {
		delivery.Every(background, reloadEvery, func(ctx context.Context) {
			if err := load(ctx); err != nil && ctx.Err() == nil {
				d.log.Error().Err(err).Msg("sources not reloaded; what was known stays")
			}
		})
	})
	return nil
}

// openRails opens every network and starts an engine on it that works for others. It refuses to start on a lie, as a serve does.
func (d *Desk) openRails(ctx, background context.Context, c config.Desk, gas chain.Key, recipients func(common.Address) bool,
) (open []desk.Rail, checks map[string]readiness.Check, err error) {
	var nodes []*chain.Node
	var errs []error
	for _, n := range c.Networks {
		node, err := openNode(n, d.sources, d.log)
		if err != nil {
			errs = append(errs, fmt.Errorf("network %s: %w", n.ID, err))
			continue
		}
		d.closers = append(d.closers, func(context.Context) error { node.Close(); return nil })
		nodes = append(nodes, node)
	}
	s := start{db: d.db, now: now, dev: c.Dev, log: d.log, wallets: keys{gas: gas}.wallets()}
	if err := errors.Join(append(errs, s.lies(ctx, nodes))...); err != nil {
		return nil, nil, err
	}
	checks = map[string]readiness.Check{}
	for _, node := range nodes {
		id := node.Network().ID
		engine, err := facilitator.NewEngine(node, d.db, gas, facilitator.Options{
			Recipients: recipients,
			Report:     func(err error) { d.log.Warn().Err(err).Str("network", id).Msg("settling engine") },
		})
		if err != nil {
			return nil, nil, err
		}
		d.running.Go(func() { engine.Run(background) })
		open = append(open, desk.Rail{Network: node.Network(), Node: node, Engine: engine})
		checks[id] = deskCheck(node, engine)
	}
	return open, checks, nil
}

func deskKeys(keys []config.APIKey) []desk.Key {
	var out []desk.Key
	for _, k := range keys {
		key := desk.Key{Name: k.Name, SHA256: k.SHA256, Anybody: k.Anybody, PerMinute: k.PerMinute}
		for _, r := range k.Recipients {
			key.Recipients = append(key.Recipients, common.HexToAddress(r))
		}
		out = append(out, key)
	}
	return out
}

// Stop drains: no new requests, settlements under way get their answers, then everything is closed. It may be called again and returns the
// same.
func (d *Desk) Stop(ctx context.Context) error {
	return d.end(ctx, func(context.Context) error { return nil }) // the doors have waited for what is under way
}
