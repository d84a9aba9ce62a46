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
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
)

const keyID = "organizations/1/apiKeys/2"

func ecSecret(t *testing.T, curve elliptic.Curve, block string) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if block == "PRIVATE KEY" {
		der, err = x509.MarshalPKCS8PrivateKey(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}))
}

func edSecret(t *testing.T) (ed25519.PrivateKey, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key, base64.StdEncoding.EncodeToString(key)
}

// verifies checks a JWS signature with nothing of ours.
func verifies(public crypto.PublicKey, text string, signature []byte) bool {
	switch key := public.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, []byte(text), signature)
	case *ecdsa.PublicKey:
		digest := sha256.Sum256([]byte(text))
		return len(signature) == 64 && ecdsa.Verify(key, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:]))
	}
	return false
}

func TestCDP_SignsATokenOfItsOwnForEachRequest(t *testing.T) {
	t.Parallel()
	ec, inSEC1 := ecSecret(t, elliptic.P256(), "EC PRIVATE KEY")
	ec8, inPKCS8 := ecSecret(t, elliptic.P256(), "PRIVATE KEY")
	ed, inBase64 := edSecret(t)
	for name, tt := range map[string]struct {
		secret, algorithm string
		public            crypto.PublicKey
	}{
		"an EC key":                        {inSEC1, "ES256", ec.Public()},
		"an EC key with escaped line ends": {strings.ReplaceAll(inSEC1, "\n", `\n`), "ES256", ec.Public()},
		"an EC key in PKCS #8":             {inPKCS8, "ES256", ec8.Public()},
		"an Ed25519 key":                   {inBase64, "EdDSA", ed.Public()},
		"an Ed25519 key with a line end":   {inBase64 + "\n", "EdDSA", ed.Public()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			credential, err := CDP(keyID, tt.secret)
			if err != nil {
				t.Fatal(err)
			}
			var tokens []string
			d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
				tokens = append(tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
				says(200, settled(nil))(w, r)
			})
			at := newClock()
			c := d.client(t, func(o *Options) { at.option(o); o.Credential = credential })
			for range 2 {
				if got := settle(t.Context(), c); got.Kind != Paid {
					t.Fatalf("answer %+v", got)
				}
			}
			if tokens[0] == tokens[1] {
				t.Error("one token for two requests")
			}
			parts := strings.Split(tokens[0], ".")
			if len(parts) != 3 {
				t.Fatalf("token of %d parts", len(parts))
			}
			var header, claims map[string]any
			for i, into := range []*map[string]any{&header, &claims} {
				text, err := base64.RawURLEncoding.DecodeString(parts[i])
				if err != nil || json.Unmarshal(text, into) != nil {
					t.Fatalf("part %d: %s", i, text)
				}
			}
			uri := "POST " + strings.TrimPrefix(d.URL, "http://") + "/x402/settle"
			now := float64(at.now().Unix())
			if header["alg"] != tt.algorithm || header["typ"] != "JWT" || header["kid"] != keyID || len(header["nonce"].(string)) != 32 {
				t.Errorf("header %v", header)
			}
			if claims["sub"] != keyID || claims["iss"] != "cdp" || claims["uri"] != uri || fmt.Sprint(claims["uris"]) != "["+uri+"]" ||
				claims["nbf"] != now || claims["exp"] != now+120 {
				t.Errorf("claims %v, want them for %q at %v", claims, uri, now)
			}
			signature, err := base64.RawURLEncoding.DecodeString(parts[2])
			if err != nil || !verifies(tt.public, parts[0]+"."+parts[1], signature) {
				t.Errorf("the signature does not hold: %v", err)
			}
		})
	}
}

func TestCDP_RefusesAKeyThatIsNoneAndDoesNotRepeatIt(t *testing.T) {
	t.Parallel()
	_, otherCurve := ecSecret(t, elliptic.P384(), "EC PRIVATE KEY")
	_, good := edSecret(t)
	_, another := edSecret(t)
	mixed := make([]byte, 0, 64)
	for i, text := range []string{good, another} {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		mixed = append(mixed, raw[32*i:32*i+32]...)
	}
	for name, secret := range map[string]string{
		"nothing": "", "a word": "hunter2hunter2", "a short key": good[:40], "another curve": otherCurve,
		"halves of two keys": base64.StdEncoding.EncodeToString(mixed), "a PEM of nothing": "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
	} {
		_, err := CDP(keyID, secret)
		if err == nil || secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestToken_GoesAlongAndShowsNowhere(t *testing.T) {
	t.Parallel()
	const text = "hunter2"
	var got []string
	d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		says(200, html)(w, r)
	})
	_, secret := edSecret(t)
	signer, err := CDP(keyID, secret)
	if err != nil {
		t.Fatal(err)
	}
	c := d.client(t, func(o *Options) { o.Credential = Token(text) })
	a := settle(t.Context(), c)
	d.Close()
	b := settle(t.Context(), c)
	if len(got) != 1 || got[0] != "Bearer "+text {
		t.Errorf("headers %q", got)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		shown := fmt.Sprintf(verb, Token(text)) + fmt.Sprintf(verb, signer) + a.Err.Error() + b.Err.Error()
		if strings.Contains(shown, text) || strings.Contains(shown, fmt.Sprintf("%x", text)) || strings.Contains(shown, secret) {
			t.Errorf("%s shows it: %s", verb, shown)
		}
	}
}
