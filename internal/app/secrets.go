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
// and left: its services are broken, and the others go on.
func (a *App) reseal(ctx context.Context, s catalog.Secrets) error {
	ctx, cancel := context.WithTimeout(ctx, resealTime)
	defer cancel()
	all, err := s.Reseal(ctx, a.db)
	if err != nil {
		return err
	}
	if all.Done > 0 {
		a.log.Info().Int("secrets", all.Done).Msg("secrets of services were encrypted again with the current key")
	}
	if len(all.Lost) > 0 {
		a.log.Error().Strs("services", all.Lost).Msg("secrets of services open with none of the keys: these services can not be called")
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
