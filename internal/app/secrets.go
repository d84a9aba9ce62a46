package app

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"market/internal/catalog"
	"market/internal/config"
	"market/internal/secretbox"
	"market/internal/siwx"
)

// resealTime bounds the work at a start after a new key; the next start goes on where it ended.
const resealTime = time.Minute

// secrets opens the keys that encrypt what callers got, and what providers entrusted to us. Development needs no file: it has no secrets.
func secrets(c config.Config) (secretbox.Box, error) {
	if c.SecretsKeyFile == "" {
		return secretbox.DevelopmentBox(), nil
	}
	box, err := secretbox.OpenKeys(c.SecretsKeyFile)
	if err != nil {
		return secretbox.Box{}, fmt.Errorf("MARKET_SECRETS_KEY_FILE: %w", err)
	}
	return box, nil
}

// reseal moves what providers entrusted to us to the current key, so that an older one can be taken out of the file. What no key opens is told
// and left: its services are broken, and the others go on. So do all where it fails: the older keys still open what they sealed.
func (a *App) reseal(ctx context.Context, s catalog.Secrets) {
	ctx, cancel := context.WithTimeout(ctx, resealTime)
	defer cancel()
	all, err := s.Reseal(ctx, a.db)
	if err != nil {
		a.log.Error().Err(err).Msg("secrets of services were not all encrypted again with the current key: keep the older keys in the file until a later start has done it")
	}
	if all.Done > 0 {
		a.log.Info().Int("secrets", all.Done).Msg("secrets of services were encrypted again with the current key")
	}
	if len(all.Lost) > 0 {
		a.log.Error().Strs("services", all.Lost).Msg("secrets of services open with none of the keys: these services can not be called")
	}
	if len(all.Unsigned) > 0 {
		a.log.Error().Strs("services", all.Unsigned).Msg("secrets of webhooks open with none of the keys: make another one for each of these services, or their providers are told by mail alone")
	}
}

// servicesBroke tells the operator of services that cannot be asked any more: their callers are told to come again, and somebody has to see to it.
func (a *App) servicesBroke(slugs []string) {
	a.log.Error().Strs("services", slugs).Msg("listings of services can not be used, and the services are not sold: an admin sees why in each listing, as problems")
}

// checkOpened refuses to start with a key file that opens nothing: it is another file much more likely than that everything else is wrong.
func checkOpened(s *catalog.Snapshot) error {
	if opened, all := s.Opened(); all > 0 && opened == 0 {
		return fmt.Errorf("MARKET_SECRETS_KEY_FILE: none of the keys opens the secrets of any of the %d services that are for sale; "+
			"put the key that sealed them into the file, or, if it is lost, suspend the services and have their providers set their secrets again", all)
	}
	return nil
}

// signInOf is who we are to a caller that signs in: the host that it sees, on the chains that it can pay on.
func signInOf(publicURL string, open rails) (siwx.Expect, error) {
	u, err := url.Parse(publicURL)
	if err != nil {
		return siwx.Expect{}, fmt.Errorf("public URL: %w", err)
	}
	who := siwx.Expect{Domain: u.Host, Origin: u.Scheme + "://" + u.Host}
	for _, n := range open.networks() {
		who.ChainIDs = append(who.ChainIDs, n.ChainID)
	}
	return who, nil
}
