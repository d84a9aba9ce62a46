package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net"
	"testing"
	"time"
)

// publicHost is the name of the services of these tests, and publicAddress where they are, as far as anybody looks.
const (
	publicHost    = "api.weather.example"
	publicURL     = "https://" + publicHost
	publicAddress = "93.184.216.34"
	publicPeer    = publicAddress + ":443"
)

// unknownExtension is one that a reader of certificates must refuse, as it cannot know what it means.
var unknownExtension = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3, 4, 5}, Critical: true, Value: []byte{5, 0}}}

// An authority signs certificates for the services of a test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the tests"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(signed)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key}
}

// issue returns a certificate for a host; change may spoil it.
func (a *authority) issue(t *testing.T, host string, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(form)
	}
	signed, err := x509.CreateCertificate(rand.Reader, form, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}

// trusting makes a client trust the authority's certificates.
func (a *authority) trusting(c *Client) *Client {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	c.transport.TLSClientConfig.RootCAs = roots
	return c
}

// acceptTLS is accept with TLS around each connection; a connection whose handshake fails is not talked to.
func acceptTLS(t *testing.T, config *tls.Config, talk func(*tls.Conn)) string {
	t.Helper()
	return accept(t, func(c net.Conn) {
		conn := tls.Server(c, config)
		if conn.Handshake() == nil {
			talk(conn)
		}
		_ = conn.Close()
	})
}
