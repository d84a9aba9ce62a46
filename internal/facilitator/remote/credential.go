package remote

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A Credential lets a facilitator know who asks. However it is printed, it shows nothing.
type Credential interface {
	sign(r *http.Request, now time.Time) error
}

// Open is no credential.
var Open Credential = open{}

type open struct{}

func (open) sign(*http.Request, time.Time) error { return nil }

// Token is a bearer token that does not change.
func Token(text string) Credential { return &token{text} }

type token struct{ text string }

func (t *token) sign(r *http.Request, _ time.Time) error {
	r.Header.Set("Authorization", "Bearer "+t.text)
	return nil
}

func (t *token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(token)") }

// jwtLife is how long one signed token is good, in seconds. One is made for each request.
const jwtLife = 120

// CDP signs a token of its own for each request, as the Coinbase Developer Platform asks for. The secret is what the platform issues: an EC
// key on P-256 in PEM, or an Ed25519 key in base64, 32 bytes of seed and 32 of public key. An error never repeats it.
func CDP(id, secret string) (Credential, error) {
	c := &cdp{id: id}
	// Some tools keep the line ends of the PEM as the two characters \ and n.
	if block, _ := pem.Decode([]byte(strings.ReplaceAll(secret, `\n`, "\n"))); block != nil {
		key, err := ecKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		c.key, c.algorithm = key, "ES256"
		return c, nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	if err != nil || len(raw) != ed25519.PrivateKeySize {
		return nil, errors.New("the secret is neither an EC key in PEM nor an Ed25519 key of 64 bytes in base64")
	}
	key := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
	if !key.Equal(ed25519.PrivateKey(raw)) {
		return nil, errors.New("the two halves of the Ed25519 key do not belong together")
	}
	c.key, c.algorithm = key, "EdDSA"
	return c, nil
}

// ecKey reads both forms in which an EC key stands in a PEM block.
func ecKey(der []byte) (*ecdsa.PrivateKey, error) {
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(der)
		if err != nil {
			return nil, errors.New("the PEM block holds no private key")
		}
		var isEC bool
		if key, isEC = parsed.(*ecdsa.PrivateKey); !isEC {
			return nil, errors.New("the PEM block holds a key of another kind than EC")
		}
	}
	if key.Curve != elliptic.P256() {
		return nil, errors.New("the EC key is not on the curve P-256")
	}
	return key, nil
}

type cdp struct {
	id        string
	key       crypto.Signer
	algorithm string
}

func (c *cdp) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(CDP key)") }

type jwtHeader struct {
	Algorithm string `json:"alg"`
	Type      string `json:"typ"`
	KeyID     string `json:"kid"`
	Nonce     string `json:"nonce"`
}

// The platform's documents name the request in uri, its own libraries in uris.
type jwtClaims struct {
	Subject   string   `json:"sub"`
	Issuer    string   `json:"iss"`
	NotBefore int64    `json:"nbf"`
	IssuedAt  int64    `json:"iat"`
	Expires   int64    `json:"exp"`
	URI       string   `json:"uri"`
	URIs      []string `json:"uris"`
}

// sign binds the token to method, host and path, so that one that leaks opens nothing else.
func (c *cdp) sign(r *http.Request, now time.Time) error {
	var nonce [16]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return fmt.Errorf("draw the nonce of a token: %w", err)
	}
	uri := r.Method + " " + r.URL.Host + r.URL.EscapedPath()
	header, err := segment(jwtHeader{c.algorithm, "JWT", c.id, hex.EncodeToString(nonce[:])})
	if err != nil {
		return err
	}
	claims, err := segment(jwtClaims{c.id, "cdp", now.Unix(), now.Unix(), now.Unix() + jwtLife, uri, []string{uri}})
	if err != nil {
		return err
	}
	signature, err := c.signature([]byte(header + "." + claims))
	if err != nil {
		return fmt.Errorf("sign a token: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+header+"."+claims+"."+base64.RawURLEncoding.EncodeToString(signature))
	return nil
}

func segment(v any) (string, error) {
	text, err := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// signature is in the form of JWS: of ES256 r and s, 32 bytes each.
func (c *cdp) signature(text []byte) ([]byte, error) {
	switch key := c.key.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(key, text), nil
	case *ecdsa.PrivateKey:
		digest := sha256.Sum256(text)
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			return nil, err
		}
		out := make([]byte, 64)
		r.FillBytes(out[:32])
		s.FillBytes(out[32:])
		return out, nil
	}
	return nil, errors.New("a key of no kind")
}
