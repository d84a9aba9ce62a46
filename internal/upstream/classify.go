package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

// A cause is why a request brought no answer that counts, with a text for people. The text is public: it names no address of ours.
type cause struct {
	reason call.Reason
	detail string
}

// ourErrnos are failures of this machine or its network. They are no evidence about a service.
var ourErrnos = []syscall.Errno{
	syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EHOSTUNREACH, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE, syscall.EMFILE, syscall.ENFILE,
	syscall.ENOBUFS, syscall.ENOMEM, syscall.EACCES, syscall.EPERM,
}

// classify says whose doing an error of a request was. stopped says that the caller of this package ended the request: then nothing is
// known about the service. What nobody thought of is ours, so that a service is never blamed without evidence.
func classify(err error, p *progress, stopped bool) cause {
	var (
		forbidden *forbiddenAddressError
		dns       *net.DNSError
		roots     x509.SystemRootsError
	)
	switch {
	case stopped:
		return cause{call.LocalError, "the request was stopped here"}
	case errors.As(err, &forbidden):
		return cause{call.UpstreamUnreachable, "the service's name leads to an address that is not public"}
	case errors.As(err, &dns) && dns.IsNotFound:
		return cause{call.UpstreamUnreachable, "the service's name does not exist"}
	case errors.As(err, &dns):
		return cause{call.EgressDown, "the service's name could not be looked up from here"}
	case errors.As(err, &roots):
		return cause{call.LocalError, "no certificate can be checked here"}
	case isOurs(err):
		return cause{call.EgressDown, "no connection could be made from here"}
	case isTimeout(err):
		if p.resolving.Load() && !p.connected.Load() {
			return cause{call.EgressDown, "the service's name could not be looked up from here in time"}
		}
		if p.connecting() {
			return cause{call.UpstreamTimeout, "no connection to the service could be made in time"}
		}
		return cause{call.UpstreamTimeout, "the service did not answer in time"}
	case p.answered.Load():
		return cause{call.UpstreamBadResponse, "the service's answer is malformed or cut short"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return cause{call.UpstreamUnreachable, "the service refused the connection"}
	case isTLS(err) || p.handshaking.Load():
		return cause{call.UpstreamUnreachable, "no secure connection: the service's certificate or its TLS is not valid"}
	case p.connected.Load() || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		return cause{call.UpstreamUnreachable, "the service hung up, or broke the protocol, before it answered"}
	}
	return cause{call.LocalError, "the request could not be sent"}
}

// blame is classify with the canaries heard. A connection that is not made in time looks the same whether the service is gone or our own way
// out is: only there do they have a say. since is when the request began.
func (c *Client) blame(ctx context.Context, err error, p *progress, since time.Time) cause {
	is := classify(err, p, ctx.Err() != nil)
	if is.reason == call.UpstreamTimeout && p.connecting() && c.canaries.Ask(ctx, since).Fails() {
		return cause{call.EgressDown, "no connection could be made from here: hosts that are known to be up could not be reached either"}
	}
	return is
}

// isOurs says whether an error is about this machine or its network alone.
func isOurs(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(ourErrnos, errno)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &n) && n.Timeout())
}

// isTLS knows the errors of a handshake that have a type. An alert has none that can be seen from outside; where a request was in its
// handshake, that decides.
func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError // whatever is wrong with a certificate is inside
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &record)
}

// statusCause says what a status means at an endpoint; call.OK where it is what the listing promises.
func statusCause(e *catalog.Endpoint, status int) cause {
	switch {
	case status < 200 || status > 599:
		return cause{call.UpstreamBadResponse, "the service answered with a status that is no answer"}
	case e.Serves(status):
		return cause{reason: call.OK}
	case status == 304:
		return cause{call.UpstreamBadResponse, "the service answered that nothing changed, which nobody had asked"}
	case status <= 399:
		return cause{call.UpstreamRedirect, "the service answered with a redirect"}
	case status >= 500:
		return cause{call.Upstream5xx, "the service failed"}
	}
	switch status {
	case 401, 407:
		return cause{call.UpstreamAuth, "the service asked us for credentials"}
	case 402:
		return cause{call.UpstreamPaymentRequired, "the service asked for a payment of its own"}
	case 429:
		return cause{call.UpstreamThrottled, "the service limits how often it can be asked"}
	}
	return cause{call.RejectedByService, "the service turned the request down"}
}
