package secretbox

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	keyBytes     = 32
	keysMax      = 16
	fileBytesMax = keysMax * (2*keyBytes + 1)
)

// A keyID names a key in what it sealed without telling anything about it.
type keyID [8]byte

type key struct {
	id   keyID
	aead cipher.AEAD
}

func newKey(secret []byte) (key, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return key{}, fmt.Errorf("secret key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, fmt.Errorf("secret key: %w", err)
	}
	sum := sha256.Sum256(append([]byte("market secretbox key id\x00"), secret...))
	return key{id: keyID(sum[:len(keyID{})]), aead: aead}, nil
}

// OpenKeys reads a file of keys: 1 to 16 lines of 64 hexadecimal digits and nothing else. The first is the current one. Its errors name lines
// and never repeat what stands there.
func OpenKeys(path string) (Box, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's own configuration names it
	if err != nil {
		return Box{}, fmt.Errorf("open secret keys: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return Box{}, fmt.Errorf("read secret keys: %w", err)
	}
	b, err := parseKeys(text)
	if err != nil {
		return Box{}, fmt.Errorf("read secret keys of %s: %w", path, err)
	}
	return b, nil
}

func parseKeys(text []byte) (Box, error) {
	if len(text) > fileBytesMax {
		return Box{}, fmt.Errorf("more than %d keys", keysMax)
	}
	if len(text) == 0 {
		return Box{}, errors.New("no keys")
	}
	var b Box
	for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		secret := make([]byte, keyBytes)
		if len(line) != 2*keyBytes {
			return Box{}, fmt.Errorf("line %d is not %d hexadecimal digits", i+1, 2*keyBytes)
		}
		if _, err := hex.Decode(secret, line); err != nil {
			return Box{}, fmt.Errorf("line %d is not %d hexadecimal digits", i+1, 2*keyBytes)
		}
		// A placeholder that somebody forgot to fill in would seal as well as any key.
		if bytes.Count(secret, secret[:1]) == keyBytes {
			return Box{}, fmt.Errorf("line %d is no random key: all of its bytes are the same", i+1)
		}
		k, err := newKey(secret)
		if err != nil {
			return Box{}, err
		}
		if _, twice := b.named(k.id); twice {
			return Box{}, fmt.Errorf("line %d repeats an earlier key", i+1)
		}
		b.keys = append(b.keys, k)
	}
	return b, nil
}

// DevelopmentBox returns a box whose key stands in this line: all programs in development mode open what one of them sealed, before a restart
// or after it, and so does everybody else.
func DevelopmentBox() Box {
	return boxOf(sha256.Sum256([]byte("market development key: it is public and protects nothing")))
}

// RandomBox returns a box with a key of its own, which is gone with the process: for tests.
func RandomBox() Box {
	var secret [keyBytes]byte
	_, _ = rand.Read(secret[:]) // never fails
	return boxOf(secret)
}

func boxOf(secret [keyBytes]byte) Box {
	k, err := newKey(secret[:])
	if err != nil {
		panic("secretbox: " + err.Error()) // the length is right
	}
	return Box{keys: []key{k}}
}
