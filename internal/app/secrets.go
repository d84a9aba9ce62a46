package app

import (
	"fmt"
	"net/url"

	"market/internal/config"
	"market/internal/secretbox"
	"market/internal/siwx"
)

// secrets opens the keys that encrypt what callers got. In development a key of this process does: what it sealed is lost with it.
func secrets(c config.Config) (secretbox.Box, error) {
	if c.SecretsKeyFile == "" {
		return secretbox.RandomBox(), nil
	}
	box, err := secretbox.OpenKeys(c.SecretsKeyFile)
	if err != nil {
		return secretbox.Box{}, fmt.Errorf("MARKET_SECRETS_KEY_FILE: %w", err)
	}
	return box, nil
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
