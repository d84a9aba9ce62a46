package app

import (
	"net/url"
	"strings"

	"market/internal/config"
	"market/internal/upstream"
)

// newCanaries returns the hosts that tell our own trouble from that of a service.
func (a *App) newCanaries(c config.Config) *upstream.Canaries {
	if len(c.Canaries) == 0 && !c.Dev {
		a.log.Warn().Msg("MARKET_CANARIES names no host: while our own way out is broken, services that cannot be connected to in time are blamed for it, until so many of them fail at once that it is taken for an outage of ours")
	}
	return upstream.NewCanaries(c.Canaries, now, func(s upstream.Sounding) {
		if s.Fails() {
			a.log.Error().Int("failed", s.Failed).Int("asked", s.Asked).Msg("canaries take no connection: our own way out is in doubt, and no service is blamed for a connection that is not made in time; if none takes one twice, that is an outage of ours")
			return
		}
		a.log.Info().Int("asked", s.Asked).Msg("all canaries take connections again")
	})
}

// ownHosts are where this market itself is, as a base URL would name it: no service may be there.
func (a *App) ownHosts(c config.Config) []string {
	var own []string
	for _, text := range []string{a.publicURL, a.DoorURL()} {
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		if c.Dev {
			own = append(own, strings.ToLower(u.Host))
			continue
		}
		own = append(own, strings.ToLower(u.Hostname()))
	}
	return own
}
