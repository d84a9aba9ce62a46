package upstream

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// A progress is how far a request came. It is needed where an error does not carry it: a deadline looks the same while a name is
// resolved (our resolver) and while the service thinks, and some of net/http's errors have no type. Its callbacks may come from other
// goroutines, and late.
type progress struct {
	resolving   atomic.Bool // asking the resolver, no good answer yet
	handshaking atomic.Bool // in a TLS handshake that has not succeeded
	connected   atomic.Bool // had a connection to write the request to
	answered    atomic.Bool // read a byte of an answer
	sent        atomic.Bool // began to write the header of the request

	// stop ends a request that net/http is about to send again over HTTP/2, which it does for any method when a stream is reset in certain
	// ways; nil lets it. What ended the first one is then lost, and that there was no answer stays.
	stop func()
}

// connecting says whether the request has a name's addresses and no connection yet: the one stage that has no mark of its own.
func (p *progress) connecting() bool {
	return !p.resolving.Load() && !p.handshaking.Load() && !p.connected.Load() && !p.answered.Load()
}

func (p *progress) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart: func(httptrace.DNSStartInfo) { p.resolving.Store(true) },
		DNSDone: func(info httptrace.DNSDoneInfo) {
			if info.Err == nil { // an error may be the request's own deadline, which must still look like a resolver that was too slow
				p.resolving.Store(false)
			}
		},
		TLSHandshakeStart: func() { p.handshaking.Store(true) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err == nil {
				p.handshaking.Store(false)
			}
		},
		GotConn: func(info httptrace.GotConnInfo) {
			p.connected.Store(true)
			p.handshaking.Store(false)
			if p.stop != nil && p.sent.Load() && isHTTP2(info.Conn) {
				p.stop()
			}
		},
		// Of each field, before any of them is on the wire: the hook of the whole header may come later than an answer.
		WroteHeaderField:     func(string, []string) { p.sent.Store(true) },
		GotFirstResponseByte: func() { p.answered.Store(true) },
	})
}

// isHTTP2 tells where a second connection for one request means that it was sent before. Over HTTP/1 net/http takes another one only when
// nothing was written.
func isHTTP2(c net.Conn) bool {
	secure, ok := c.(*tls.Conn)
	return ok && secure.ConnectionState().NegotiatedProtocol == "h2"
}
