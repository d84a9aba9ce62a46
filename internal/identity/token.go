package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"market/internal/config"
)

// Beginnings of tokens. They tell a person, and who looks for leaked secrets, what was found.
const (
	sessionPrefix = "mkses_" // mks_ is what a service gets of us
	keyPrefix     = "mkk_"
)

const (
	secretBytes = 32
	hintLength  = 4
)

// tokenText has one spelling for each value.
var tokenText = base64.RawURLEncoding.Strict()

func newToken(prefix string) config.Secret {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails: see crypto/rand
	return config.NewSecret(prefix + tokenText.EncodeToString(secret[:]))
}

// digestOf is what is kept of a token. It needs no salt: nobody guesses 32 random bytes.
func digestOf(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// KindOf says what a token may be by its form, before anything is asked for it; Nobody where it is none of ours.
func KindOf(token string) Kind {
	for kind, prefix := range map[Kind]string{Session: sessionPrefix, Key: keyPrefix} {
		secret, ok := strings.CutPrefix(token, prefix)
		if !ok || len(secret) != tokenText.EncodedLen(secretBytes) {
			continue
		}
		if _, err := tokenText.DecodeString(secret); err == nil {
			return kind
		}
	}
	return Nobody
}
