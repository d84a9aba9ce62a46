package hostiletest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"time"
)

// An issuer signs certificates.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// authority is trusted by this program, stranger is not.
var authority, stranger = newIssuer("Authority of the tests"), newIssuer("Nobody knows this one")

func newIssuer(name string) issuer {
	key := newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	certificate, err := x509.ParseCertificate(sign(template, template, key, key))
	if err != nil {
		panic(err)
	}
	return issuer{certificate, key}
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func sign(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) []byte {
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		panic(err)
	}
	return raw
}

func (i issuer) write(file string) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.certificate.Raw}), 0o600)
}

// issue makes a certificate for the host's address; change may spoil it.
func (i issuer) issue(change func(*x509.Certificate)) tls.Certificate {
	key := newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if change != nil {
		change(template)
	}
	return tls.Certificate{Certificate: [][]byte{sign(template, i.certificate, key, i.key)}, PrivateKey: key}
}

// valid is a good certificate.
var valid = authority.issue(nil)

// with is a configuration that shows one certificate.
func with(c tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
}
