package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// secretBytesMax is far above what a token or a key has.
const secretBytesMax = 16 << 10

var tokenForm = regexp.MustCompile(`^[!-~]+$`)

// readSecret reads a file that holds a secret. One that every account of the machine can read is none.
func readSecret(path string) (string, error) {
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		if failed, ok := errors.AsType[*os.PathError](err); ok {
			return "", fmt.Errorf("%s: %w", shorten(path), failed.Err)
		}
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a file", shorten(path))
	case info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("%s: every account can read or write it; let only the server's (chmod 600)", shorten(path))
	}
	text, err := io.ReadAll(io.LimitReader(file, secretBytesMax+1))
	if err != nil {
		return "", err
	}
	if len(text) > secretBytesMax {
		return "", fmt.Errorf("%s: more than %d bytes", shorten(path), secretBytesMax)
	}
	return string(text), nil
}

// readCDPKey reads the file in which the Coinbase Developer Platform hands an API key out. Its members have changed their names over time.
func readCDPKey(path string) (CDPKey, error) {
	text, err := readSecret(path)
	if err != nil {
		return CDPKey{}, err
	}
	var file struct {
		ID         string `json:"id"`
		Name       string `json:"name"`
		Secret     string `json:"secret"`
		PrivateKey string `json:"privateKey"`
	}
	// The error of the decoder can hold a part of what it read.
	if json.Unmarshal([]byte(text), &file) != nil {
		return CDPKey{}, fmt.Errorf("%s: expected a JSON object with id and secret", shorten(path))
	}
	id, secret := file.Name, file.PrivateKey
	if file.ID != "" {
		id = file.ID
	}
	if file.Secret != "" {
		secret = file.Secret
	}
	if id == "" || strings.TrimSpace(secret) == "" {
		return CDPKey{}, fmt.Errorf("%s: expected a JSON object with id and secret", shorten(path))
	}
	return CDPKey{ID: id, Secret: NewSecret(secret)}, nil
}
