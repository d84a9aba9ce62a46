package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"market/internal/chain"
	"market/internal/config"
	"market/internal/facilitator"
	"market/internal/facilitator/remote"
	"market/internal/source"
)

// remotes are the clients of the facilitators that are not ours, by their names.
type remotes map[string]*remote.Client

// openRemotes asks each remote facilitator what it supports, and keeps asking in the background.
func (a *App) openRemotes(ctx, background context.Context, c config.Config) (remotes, error) {
	open := remotes{}
	for _, f := range c.Facilitators {
		if f.Kind != config.KindRemote {
			continue
		}
		client, err := a.newRemote(f)
		if err != nil {
			return nil, err
		}
		a.closers = append(a.closers, func(context.Context) error { client.Close(); return nil })
		open[f.Name] = client
	}
	var asking sync.WaitGroup
	for _, client := range open {
		asking.Go(func() { _ = client.Ask(ctx) }) // what came of it is kept; supported says it
	}
	asking.Wait()
	for name, client := range open {
		a.loop(background, "facilitator/"+name, client.Watch)
	}
	return open, nil
}

func (a *App) newRemote(f config.Facilitator) (*remote.Client, error) {
	credential := remote.Open
	switch {
	case f.Token.Reveal() != "":
		credential = remote.Token(f.Token.Reveal())
	case f.CDP.ID != "":
		var err error
		if credential, err = remote.CDP(f.CDP.ID, f.CDP.Secret.Reveal()); err != nil {
			return nil, fmt.Errorf("MARKET_FACILITATORS: facilitator %s: cdp_key_file: %w", f.Name, err)
		}
	}
	meter := a.sources.Of(source.FacilitatorName(f.Name))
	return remote.New(remote.Options{
		Name: f.Name, URL: f.URL, Credential: credential, Resource: a.publicURL, Source: meter.Source(), Meter: meter,
		Report: func(err error) {
			if err != nil {
				a.log.Warn().Err(err).Msg("facilitator")
				return
			}
			a.log.Info().Str("facilitator", f.Name).Msg("facilitator answers again")
		},
	})
}

// supported says that nobody settles on a network. Only what the configuration got wrong is an error: each of its facilitators has answered, and none settles
// there. One that is out, that cannot be reached or that answers something else may settle in a moment; until then the network is not ready, which refuses
// payments and no start.
func (a *App) supported(c config.Config, n chain.Network, open remotes) error {
	var (
		hope     bool
		says     []string
		warnings []error
	)
	for _, f := range c.For(n.ID) {
		if f.Kind == config.KindLocal {
			hope = true
			continue
		}
		client := open[f.Name]
		err := client.Settles(n)
		trouble, _ := errors.AsType[*remote.Trouble](err)
		if trouble == nil || trouble.Fault != remote.Unsupported {
			hope = true
		}
		if err != nil {
			says, warnings = append(says, client.Says()), append(warnings, errors.Join(client.Limited(), err))
		}
	}
	if !hope {
		return fmt.Errorf("network %s: no facilitator settles on it: %s", n.ID, strings.Join(says, "; "))
	}
	for _, err := range warnings {
		a.log.Warn().Err(err).Str("network", n.ID).Msg("facilitator is not used for now")
	}
	return nil
}

// links are the facilitators of a network in their order.
func links(c config.Config, r *rail, open remotes) []facilitator.Link {
	var all []facilitator.Link
	for _, f := range c.For(r.network.ID) {
		if f.Kind == config.KindLocal {
			all = append(all, facilitator.Link{Engine: r.engine})
			continue
		}
		all = append(all, facilitator.Link{Remote: open[f.Name], Later: f.Proof == config.ProofLater})
	}
	return all
}
