package hostiletest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"time"
)

// tlsRows shake hands well for the probe and badly for the work.
func tlsRows() []row {
	then := func(s *secure) plan {
		return plan{work: good, tls: func(n int) *secure {
			if n <= 1 {
				return &secure{config: with(valid)}
			}
			return s
		}}
	}
	shows := func(by issuer, change func(*x509.Certificate)) plan {
		return then(&secure{config: with(by.issue(change))})
	}
	speaks := func(f func(*talk)) plan { return then(&secure{instead: f}) }
	version := func(v uint16) plan {
		return then(&secure{config: &tls.Config{Certificates: []tls.Certificate{valid}, MinVersion: tls.VersionTLS10, MaxVersion: v}}) //nolint:gosec // that is the trick
	}
	login := with(valid)
	login.ClientAuth = tls.RequireAnyClientCert
	login.MaxVersion = tls.VersionTLS12 // in 1.3 a client hears of it only after it has asked
	chain := authority.issue(nil)
	for range 1200 {
		chain.Certificate = append(chain.Certificate, slices.Repeat([]byte{0x30}, 900))
	}
	rows := []row{
		{name: "its TLS is in order", plan: then(&secure{config: with(valid)}), want: serves(done)},
		{name: "its certificate has expired", plan: shows(authority, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), want: unreachable},
		{name: "its certificate is not valid yet", plan: shows(authority, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }), want: unreachable},
		{name: "its certificate is from an authority that nobody trusts", plan: shows(stranger, nil), want: unreachable},
		{name: "its certificate is signed by itself", plan: then(&secure{config: with(selfSigned())}), want: unreachable},
		{name: "its certificate is for another address", plan: shows(authority, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} }), want: unreachable},
		{name: "its certificate is for a name alone", plan: shows(authority, func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"127.0.0.1", "evil.test"} }), want: unreachable},
		{name: "its certificate is for clients", plan: shows(authority, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), want: unreachable},
		{name: "its certificates are 1 MB", plan: then(&secure{config: with(chain)}), want: unreachable},
		{name: "it speaks TLS 1.0 alone", plan: version(tls.VersionTLS10), want: unreachable},
		{name: "it speaks TLS 1.1 alone", plan: version(tls.VersionTLS11), want: unreachable},
		{name: "it asks for a certificate of ours", plan: then(&secure{config: login}), want: unreachable},
		{name: "it speaks plain HTTP on its TLS port", plan: speaks(func(t *talk) { t.say(answer("400 Bad Request", "evil")); t.closeWrite(); t.wait() }), want: unreachable},
		{name: "it speaks garbage on its TLS port", plan: speaks(func(t *talk) { t.say("\x00\xffevil garbage evil garbage"); t.closeWrite(); t.wait() }), want: unreachable},
		{name: "it sends garbage without end on its TLS port", plan: speaks(func(t *talk) { t.pour(string(bytes.Repeat([]byte{0x16, 3, 3, 0x40, 0}, 4000))) }), want: unreachable},
		{name: "it never ends the handshake", plan: speaks(func(t *talk) { t.wait() }), listing: soon(), want: timeout},
		{name: "it sends a byte of the handshake now and then", plan: speaks(func(t *talk) { t.drip("\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", 60*time.Millisecond) }), listing: soon(), want: timeout},
		{name: "it hangs up within the handshake", plan: speaks(func(t *talk) { _, _ = t.Read(make([]byte, 512)) }), want: unreachable},
		{name: "it resets within the handshake", plan: speaks(func(t *talk) { _, _ = t.Read(make([]byte, 512)); t.reset() }), want: unreachable},
		{name: "it answers the handshake with an alert", plan: speaks(func(t *talk) { t.say("\x15\x03\x03\x00\x02\x02\x50"); t.closeWrite(); t.wait() }), want: unreachable},
		{name: "it hangs up after the handshake", plan: plan{tls: goodTLS, work: func(t *talk) {}}, asked: 1, want: unreachable},
		{name: "it cuts its answer short over TLS, without a farewell (B93)", plan: plan{tls: goodTLS, work: func(t *talk) {
			t.eat()
			t.say("HTTP/1.1 200 OK\r\n" + forged + "\r\n" + done)
			t.pause(20 * time.Millisecond)
			t.reset()
		}}, asked: 1, want: badResponse},
	}
	for i := range rows {
		if rows[i].want.cost == refunded && rows[i].asked == 0 {
			rows[i].asked = none
		}
	}
	return rows
}

func goodTLS(int) *secure { return &secure{config: with(valid)} }

func selfSigned() tls.Certificate {
	key := newKey()
	template := &x509.Certificate{SerialNumber: authority.certificate.SerialNumber, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	return tls.Certificate{Certificate: [][]byte{sign(template, template, key, key)}, PrivateKey: key}
}
