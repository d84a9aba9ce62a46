package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"market/internal/call"
)

// kindOf names the error of an answer that failed in a few fixed words, "area: what", for those who judge a strike and for their programs. Like
// classify it goes by the type of the error and by how far the request came; it repeats nothing that came from outside, and no address.
func kindOf(r Result, p *progress) string {
	switch {
	case r.Reason == call.OK:
		return ""
	case r.Err == nil && r.Status != 0:
		return fmt.Sprintf("http: status %d", r.Status)
	case r.Err == nil, r.Reason == call.CallerLeft, r.Reason == call.Interrupted, r.Reason == call.LocalError && errors.Is(r.Err, context.Canceled):
		return "local: stopped"
	case r.Reason == call.UpstreamTimeout:
		return timeoutKind(p)
	}
	return errorKind(r.Err, p)
}

func errorKind(err error, p *progress) string {
	var (
		forbidden *forbiddenAddressError
		dns       *net.DNSError
		errno     syscall.Errno
	)
	if kind := tlsKind(err); kind != "" {
		return kind
	}
	switch {
	case errors.As(err, &forbidden):
		return "connect: address not public"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "dns: no such host"
	case errors.As(err, &dns) && isTimeout(err):
		return "dns: timeout"
	case errors.As(err, &dns):
		return "dns: lookup failed"
	case errors.As(err, &errno) && errnoKinds[errno] != "":
		return errnoKinds[errno]
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return resetKind(p)
	case isTimeout(err):
		return timeoutKind(p)
	case p.answered.Load() && errors.Is(err, io.ErrUnexpectedEOF):
		return "http: truncated"
	case p.answered.Load():
		return "http: malformed"
	case p.handshaking.Load():
		return "tls: handshake failed"
	case p.connected.Load():
		return "http: closed before an answer"
	}
	return "local: not sent"
}

// resetKind says how far the request had come.
func resetKind(p *progress) string {
	switch {
	case p.answered.Load():
		return "http: reset"
	case p.handshaking.Load():
		return "tls: reset"
	case p.connected.Load():
		return "http: reset before an answer"
	}
	return "connect: reset"
}

// timeoutKind says what was waited for.
func timeoutKind(p *progress) string {
	switch {
	case p.answered.Load():
		return "http: answer not over in time"
	case p.connected.Load():
		return "http: no answer in time"
	case p.handshaking.Load():
		return "tls: timeout"
	case p.resolving.Load():
		return "dns: timeout"
	}
	return "connect: timeout"
}

func tlsKind(err error) string {
	var (
		roots        x509.SystemRootsError
		host         x509.HostnameError
		authority    x509.UnknownAuthorityError
		invalid      x509.CertificateInvalidError
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &roots):
		return "local: no list of authorities"
	case errors.As(err, &host):
		return "tls: certificate of another host"
	case errors.As(err, &authority):
		return "tls: certificate of an unknown authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "tls: certificate expired" // or not valid yet: x509 does not tell
	case errors.As(err, &verification), errors.As(err, &invalid):
		return "tls: certificate not valid"
	case errors.As(err, &record):
		return "tls: no TLS"
	}
	return ""
}

var errnoKinds = map[syscall.Errno]string{
	syscall.ECONNREFUSED:  "connect: refused",
	syscall.EHOSTUNREACH:  "connect: host unreachable",
	syscall.ENETUNREACH:   "connect: network unreachable",
	syscall.ENETDOWN:      "local: network down",
	syscall.EADDRNOTAVAIL: "local: no port left",
	syscall.EADDRINUSE:    "local: no port left",
	syscall.EMFILE:        "local: too many files",
	syscall.ENFILE:        "local: too many files",
	syscall.ENOBUFS:       "local: no memory",
	syscall.ENOMEM:        "local: no memory",
	syscall.EACCES:        "local: not allowed",
	syscall.EPERM:         "local: not allowed",
}
