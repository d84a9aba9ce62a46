package desk

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// A Key lets its holder verify and settle.
type Key struct {
	Name       string
	SHA256     [sha256.Size]byte // of the token, which is kept nowhere
	Recipients []common.Address
	Anybody    bool // may settle to any recipient
	PerMinute  int  // requests
}

// Allows says whether the key may settle to a recipient.
func (k Key) Allows(to common.Address) bool {
	return k.Anybody || slices.Contains(k.Recipients, to)
}

// Recipients returns whom any of the keys may settle to: what the engine is told, as the last word.
func Recipients(keys []Key) func(to common.Address) bool {
	return func(to common.Address) bool {
		return slices.ContainsFunc(keys, func(k Key) bool { return k.Allows(to) })
	}
}

// tokenBytesMax is far above any token; what is longer is not hashed.
const tokenBytesMax = 1 << 10

// keyOf finds the key of a request. Every key is compared, and in constant time, so that the time of an answer tells nothing about them.
func keyOf(h http.Header, keys []Key) (Key, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return Key{}, false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > tokenBytesMax {
		return Key{}, false
	}
	sum := sha256.Sum256([]byte(token))
	var found Key
	ok := false
	for _, k := range keys {
		if subtle.ConstantTimeCompare(sum[:], k.SHA256[:]) == 1 {
			found, ok = k, true
		}
	}
	return found, ok
}
