package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

// redirected makes a client connect to one listener, whatever it is told.
func redirected(c *Client, url string) *Client {
	_, address, _ := strings.Cut(url, "://")
	c.dialer.connect = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	return c
}

// answers200 answers one request over TLS.
func answers200(c *tls.Conn) { says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(c) }

func TestClient_Ask_ClassifiesWhatGoesWrongWithTLS(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	good := ours.issue(t, publicHost, nil)
	with := func(c tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{c}} }
	spoiled := func(change func(*x509.Certificate)) *tls.Config { return with(ours.issue(t, publicHost, change)) }
	tests := map[string]struct {
		config *tls.Config
		talk   func(*tls.Conn)
		want   call.Reason
	}{
		"a good certificate":        {with(good), answers200, call.OK},
		"TLS 1.2":                   {&tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS12}, answers200, call.OK},
		"a wildcard for the host":   {with(ours.issue(t, "*.weather.example", nil)), answers200, call.OK},
		"an unknown authority":      {with(others.issue(t, publicHost, nil)), answers200, call.UpstreamUnreachable},
		"self-signed":               {with(tls.Certificate{Certificate: [][]byte{others.certificate.Raw}, PrivateKey: others.key}), answers200, call.UpstreamUnreachable},
		"expired":                   {spoiled(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), answers200, call.UpstreamUnreachable},
		"not valid yet":             {spoiled(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), answers200, call.UpstreamUnreachable},
		"of another host":           {with(ours.issue(t, "weather.example", nil)), answers200, call.UpstreamUnreachable},
		"a wildcard a level higher": {with(ours.issue(t, "*.example", nil)), answers200, call.UpstreamUnreachable},
		"of the address alone": {spoiled(func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, []net.IP{net.ParseIP(publicAddress)} }),
			answers200, call.UpstreamUnreachable},
		"for clients only": {spoiled(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
			answers200, call.UpstreamUnreachable},
		"a critical extension nobody knows": {spoiled(func(c *x509.Certificate) { c.ExtraExtensions = unknownExtension }), answers200, call.UpstreamUnreachable},
		"TLS 1.1 at most": {&tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
			answers200, call.UpstreamUnreachable},
		"no protocol in common": {&tls.Config{Certificates: []tls.Certificate{good}, NextProtos: []string{"spdy/3"}}, answers200, call.UpstreamUnreachable},
		"a certificate of ours is wanted": {&tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAnyClientCert}, answers200,
			call.UpstreamUnreachable},
		"hangs up after the handshake": {with(good), func(*tls.Conn) {}, call.UpstreamUnreachable},
		"hangs up in a record of the answer": {with(good), func(c *tls.Conn) {
			says("HTTP/1.1 200 OK\r\n\r\nhalf")(c) // the body ends with the connection, so only TLS can tell that it was cut
			_, _ = c.NetConn().Write([]byte("\x17\x03\x03\x00\x20half"))
			_ = c.NetConn().Close()
		}, call.UpstreamBadResponse},
		"a broken record in the answer": {with(good), func(c *tls.Conn) {
			says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")(c)
			_, _ = c.NetConn().Write([]byte("\x17\x03\x03\x00\x20" + strings.Repeat("x", 32)))
		}, call.UpstreamBadResponse},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := acceptTLS(t, tt.config, tt.talk)
			_, resolver := startDNS(t, always(0, publicAddress))
			c := redirected(ours.trusting(New(Options{Resolver: resolver})), url)
			got := c.Ask(t.Context(), requestTo(serviceAt(t, publicURL, nil)))
			if got.Reason != tt.want {
				t.Errorf("reason = %q, want %q (%s: %v)", got.Reason, tt.want, got.Detail, got.Err)
			}
		})
	}
}

func TestClient_Ask_ClassifiesBrokenHandshakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		talk func(net.Conn)
		want call.Reason
	}{
		"hangs up at once":           {func(net.Conn) {}, call.UpstreamUnreachable},
		"resets the hello":           {func(c net.Conn) { firstBytes(c); resetOnClose(c) }, call.UpstreamUnreachable},
		"hangs up in the handshake":  {func(c net.Conn) { firstBytes(c); _, _ = io.WriteString(c, "\x16\x03\x03\x00\x7a\x02") }, call.UpstreamUnreachable},
		"a record of another kind":   {func(c net.Conn) { firstBytes(c); _, _ = io.WriteString(c, "\x17\x03\x03\x00\x05hello") }, call.UpstreamUnreachable},
		"a record that is too large": {func(c net.Conn) { firstBytes(c); _, _ = io.WriteString(c, "\x16\x03\x03\xff\xff") }, call.UpstreamUnreachable},
		"an alert":                   {func(c net.Conn) { firstBytes(c); _, _ = io.WriteString(c, "\x15\x03\x03\x00\x02\x02\x28") }, call.UpstreamUnreachable},
		"plain HTTP":                 {plainHTTP, call.UpstreamUnreachable},
		"another protocol":           {func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n"); firstBytes(c) }, call.UpstreamUnreachable},
		"silence":                    {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, call.UpstreamTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, resolver := startDNS(t, always(0, publicAddress))
			c := redirected(New(Options{Resolver: resolver}), accept(t, tt.talk))
			s := serviceAt(t, publicURL, func(e *catalog.Endpoint) {
				if tt.want == call.UpstreamTimeout {
					e.Timeout = 200 * time.Millisecond
				}
			})
			if got := c.Ask(t.Context(), requestTo(s)); got.Reason != tt.want {
				t.Errorf("reason = %q, want %q (%s: %v)", got.Reason, tt.want, got.Detail, got.Err)
			}
		})
	}
}

// firstBytes waits until the other side has said something.
func firstBytes(c net.Conn) {
	var some [1024]byte
	_, _ = c.Read(some[:])
}

func resetOnClose(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
