package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// An APIKey lets its holder verify and settle. The token itself is nowhere: the file holds its hash.
type APIKey struct {
	Name       string
	SHA256     [sha256.Size]byte // of the token
	Recipients []string          // 0x and 40 hex digits each; none where Anybody is set
	Anybody    bool              // may settle to any recipient
	PerMinute  int               // requests
}

// Limits of the file of API keys.
const (
	apiKeysMax    = 1_000
	recipientsMax = 1_000
	perMinuteMax  = 1_000_000
)

type apiKeysFile struct {
	Keys []apiKeyEntry `json:"keys"`
}

type apiKeyEntry struct {
	Name       string   `json:"name"`
	SHA256     string   `json:"sha256"`
	Recipients []string `json:"recipients"`
	PerMinute  int      `json:"per_minute"`
}

// anybody stands alone in the list of a key that may settle to any recipient.
const anybody = "*"

var sha256Form = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

func readAPIKeys(path string) ([]APIKey, []error) {
	var file apiKeysFile
	if err := readJSON(path, &file); err != nil {
		return nil, []error{err}
	}
	if n := len(file.Keys); n < 1 || n > apiKeysMax {
		return nil, []error{fmt.Errorf("keys: got %d, expected 1 to %d", n, apiKeysMax)}
	}
	r := report{}
	var keys []APIKey
	names, hashes := map[string]bool{}, map[[sha256.Size]byte]bool{}
	for i, entry := range file.Keys {
		r.at = fmt.Sprintf("keys[%d]", i)
		k := r.apiKey(entry)
		r.check("name", !names[k.Name], k.Name, "a name that is not taken")
		r.checkHidden("sha256", !hashes[k.SHA256], "the hash of another token than those before")
		names[k.Name], hashes[k.SHA256] = true, true
		keys = append(keys, k)
	}
	return keys, r.errs
}

// noToken is the hash of a token of no characters, which everybody has.
var noToken = sha256.Sum256(nil)

func (r *report) apiKey(e apiKeyEntry) APIKey {
	k := APIKey{Name: e.Name, PerMinute: e.PerMinute}
	r.check("name", nameForm.MatchString(e.Name), e.Name, "lower-case letters, digits and dashes")
	r.checkHidden("sha256", sha256Form.MatchString(e.SHA256), "the SHA-256 of the token as 64 hex digits")
	if sha256Form.MatchString(e.SHA256) {
		_, _ = hex.Decode(k.SHA256[:], []byte(e.SHA256)) // its form is checked
		r.checkHidden("sha256", k.SHA256 != noToken, "the hash of a token that is not empty")
	}
	r.check("per_minute", 1 <= e.PerMinute && e.PerMinute <= perMinuteMax, e.PerMinute, fmt.Sprintf("1 to %d", perMinuteMax))
	if len(e.Recipients) == 1 && e.Recipients[0] == anybody {
		k.Anybody = true
		return k
	}
	n := len(e.Recipients)
	r.check("recipients", 1 <= n && n <= recipientsMax, n, fmt.Sprintf(`1 to %d addresses, or "*" alone for any`, recipientsMax))
	taken := map[string]bool{}
	for i, address := range e.Recipients {
		at := fmt.Sprintf("recipients[%d]", i)
		lower := strings.ToLower(address)
		r.check(at, addressForm.MatchString(address) && strings.Trim(lower, "0x") != "", address, "an address other than the zero address: 0x and 40 hex digits")
		r.check(at, !taken[lower], address, "an address that is not taken")
		taken[lower] = true
	}
	k.Recipients = e.Recipients
	return k
}

// checkHidden is check for a value that is not repeated: somebody may have put the token itself there.
func (r *report) checkHidden(member string, good bool, expected string) {
	if !good {
		r.errs = append(r.errs, fmt.Errorf("%s.%s: got a value that is not shown, expected %s", r.at, member, expected))
	}
}
