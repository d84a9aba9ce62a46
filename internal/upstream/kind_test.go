package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

var kindForm = regexp.MustCompile(`^(connect|dns|tls|http|schema|local): [a-zA-Z0-9 ]+$`)

func TestKindOf_NamesEveryErrorByItsTypeAndByHowFarTheRequestCame(t *testing.T) {
	t.Parallel()
	const (
		resolving = 1 << iota
		handshaking
		connected
		answered
	)
	certificate := func(err error) error { return &tls.CertificateVerificationError{Err: err} }
	for want, tt := range map[string]struct {
		err     error
		reached int
	}{
		"connect: refused":                         {errno(syscall.ECONNREFUSED), 0},
		"connect: reset":                           {errno(syscall.ECONNRESET), 0},
		"connect: host unreachable":                {errno(syscall.EHOSTUNREACH), 0},
		"connect: network unreachable":             {errno(syscall.ENETUNREACH), 0},
		"connect: timeout":                         {context.DeadlineExceeded, 0},
		"connect: address not public":              {&forbiddenAddressError{"10.0.0.1:80"}, 0},
		"local: too many files":                    {errno(syscall.EMFILE), 0},
		"local: no port left":                      {errno(syscall.EADDRNOTAVAIL), 0},
		"local: no memory":                         {errno(syscall.ENOBUFS), 0},
		"local: not allowed":                       {errno(syscall.EPERM), 0},
		"local: network down":                      {errno(syscall.ENETDOWN), 0},
		"local: not sent":                          {errors.New("net/http: invalid header field"), 0},
		"dns: no such host":                        {&net.DNSError{IsNotFound: true, Name: "api.weather.example"}, resolving},
		"dns: timeout":                             {&net.DNSError{IsTimeout: true, Name: "api.weather.example"}, resolving},
		"dns: lookup failed":                       {&net.DNSError{IsTemporary: true, Name: "api.weather.example"}, resolving},
		"tls: certificate expired":                 {certificate(x509.CertificateInvalidError{Reason: x509.Expired}), handshaking},
		"tls: certificate not valid":               {certificate(x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}), handshaking},
		"tls: certificate of another host":         {certificate(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "api.weather.example"}), handshaking},
		"tls: certificate of an unknown authority": {certificate(x509.UnknownAuthorityError{}), handshaking},
		"local: no list of authorities":            {certificate(x509.SystemRootsError{}), handshaking},
		"tls: no TLS":                              {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, handshaking},
		"tls: handshake failed":                    {errors.New("remote error: tls: handshake failure"), handshaking},
		"tls: timeout":                             {context.DeadlineExceeded, handshaking},
		"tls: reset":                               {errno(syscall.ECONNRESET), handshaking},
		"http: closed before an answer":            {io.EOF, connected},
		"http: reset before an answer":             {errno(syscall.EPIPE), connected},
		"http: no answer in time":                  {context.DeadlineExceeded, connected},
		"http: answer not over in time":            {context.DeadlineExceeded, connected | answered},
		"http: truncated":                          {io.ErrUnexpectedEOF, connected | answered},
		"http: malformed":                          {errors.New("malformed HTTP response"), connected | answered},
		"http: reset":                              {errno(syscall.ECONNRESET), connected | answered},
	} {
		var p progress
		p.resolving.Store(tt.reached&resolving != 0)
		p.handshaking.Store(tt.reached&handshaking != 0)
		p.connected.Store(tt.reached&connected != 0)
		p.answered.Store(tt.reached&answered != 0)
		is := classify(tt.err, &p, false)
		got := kindOf(failed(is, 0, fmt.Errorf("wrapped: %w", tt.err)), &p)
		if got != want || !kindForm.MatchString(got) {
			t.Errorf("%v (%s): %q, want %q", tt.err, is.reason, got, want)
		}
	}
}

func TestClient_Ask_NamesTheKindOfItsErrorWithoutAnAddress(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for want, tt := range map[string]struct {
		url    string
		change func(*catalog.Endpoint)
	}{
		"connect: refused":              {"http://" + closed.Addr().String(), nil},
		"http: closed before an answer": {accept(t, says("")), nil},
		"http: truncated":               {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")), nil},
		"http: malformed":               {accept(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")), nil},
		"http: status 503":              {accept(t, says("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")), nil},
		"http: status 302":              {accept(t, says("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")), nil},
		"http: too large":               {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 1025\r\n\r\n")), nil},
		"http: event stream":            {accept(t, says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n")), nil},
		"http: content encoding":        {accept(t, says("HTTP/1.1 200 OK\r\nContent-Encoding: gzip, \r\nContent-Length: 2\r\n\r\n{}")), nil},
		"schema: not as listed":         {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")), promising(`{"type":"array"}`)},
		"http: no answer in time": {accept(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
			func(e *catalog.Endpoint) { e.Timeout = 200 * time.Millisecond }},
		"": {accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")), nil},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			got := development().Ask(t.Context(), requestTo(serviceAt(t, tt.url, tt.change)))
			if got.Error != want || (got.Reason == call.OK) != (want == "") || strings.Contains(got.Error, "127.0.0.1") {
				t.Errorf("%q (%q: %v), want %q", got.Error, got.Reason, got.Err, want)
			}
		})
	}
}

func TestClient_Stream_NamesTheKindOfItsError(t *testing.T) {
	t.Parallel()
	const begun = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
	for want, tt := range map[string]struct {
		talk   func(net.Conn)
		change func(*catalog.Endpoint)
	}{
		"http: truncated":  {says(begun), nil},
		"http: no framing": {says("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"), nil},
		"http: answer not over in time": {func(c net.Conn) { says(begun)(c); _, _ = io.Copy(io.Discard, c) },
			func(e *catalog.Endpoint) { e.IdleTimeout = 200 * time.Millisecond }},
		"http: too large": {says(begun + "400\r\n" + strings.Repeat("a", 1024)), nil},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			got := development().Stream(t.Context(), streamOf(t, accept(t, tt.talk), tt.change), &taker{})
			if got.Error != want {
				t.Errorf("%q (%q: %v), want %q", got.Error, got.Reason, got.Err, want)
			}
		})
	}
	left := &taker{took: func(string) error { return errors.New("gone") }}
	if got := development().Stream(t.Context(), streamOf(t, accept(t, says(begun)), nil), left); got.Reason != call.CallerLeft || got.Error != "local: stopped" {
		t.Errorf("a caller that left: %q, %q", got.Reason, got.Error)
	}
}
