package hostiletest

import (
	"bufio"
	"crypto/tls"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

const (
	// tooLate ends a connection of a host that nobody else ends. It is far beyond every timeout of a listing here.
	tooLate = 20 * time.Second
	workTo  = "/base/work"    // what a service is asked for
	probeTo = "/base/healthz" // what its probe asks for
)

// A plan is what a hostile service does once it is listed; before that it is as good as any. It then begins with a good answer to the liveness
// probe, unless probe says otherwise: a service that shows its worst at once is not paid at all.
type plan struct {
	work     func(t *talk)        // answers a request for work; the connection is closed after it
	probe    func(t *talk)        // answers the probe
	again    func(t *talk)        // takes the place of work from the second request on
	raw      func(t *talk)        // takes every connection but the probe's before anything was read of it
	tls      func(n int) *secure  // nil: no TLS; n counts connections from 1, since it is listed; 0 before
	h2       func(s *stream)      // speaks HTTP/2, over TLS, and answers a request for work
	settings []http2.Setting      // of HTTP/2
	at       string               // the address that it listens at, on port 8443; empty: at 127.0.0.1, on any port
	name     string               // of the host; empty: the address
	looks    func(n int) answerer // how the name is looked up, the nth time from 1, since it is listed; nil: it leads to the host
}

// A secure is how a host shakes hands.
type secure struct {
	config *tls.Config
	// instead speaks in place of a handshake.
	instead func(t *talk)
}

// A host is one hostile service, running.
type host struct {
	plan
	listener net.Listener
	port     int
	listed   atomic.Bool  // and so hostile
	conns    atomic.Int64 // connections that came since
	asked    atomic.Int64 // requests for work whose head was read
	paths    sync.Map     // request targets that were seen
	deaf     atomic.Bool  // accepts no more
	closed   chan struct{}
	talking  sync.WaitGroup
}

// open starts a host and ends it with the test.
func open(t testing.TB, p plan) *host {
	t.Helper()
	at := "127.0.0.1:0"
	if p.at != "" {
		at = p.at + ":8443"
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{plan: p, listener: l, port: l.Addr().(*net.TCPAddr).Port, closed: make(chan struct{})} //nolint:forcetypeassert // a TCP listener
	if p.name != "" {
		resolver.serve(p.name, func(n int) answerer {
			if p.looks == nil || n == 0 {
				return leadsTo("127.0.0.1")
			}
			return p.looks(n)
		})
	}
	go h.accept()
	t.Cleanup(h.close)
	return h
}

// turn makes the host what it is.
func (h *host) turn() {
	h.listed.Store(true)
	resolver.turn(h.name)
}

// base is the URL of the listing.
func (h *host) base() string {
	scheme, name := "http", h.name
	if h.tls != nil || h.h2 != nil {
		scheme = "https"
	}
	if name == "" {
		name = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(name, strconv.Itoa(h.port)) + "/base"
}

func (h *host) accept() {
	for {
		c, err := h.listener.Accept()
		if err != nil {
			return
		}
		if h.deaf.Load() {
			h.hold(c)
			return
		}
		n := 0
		if h.listed.Load() {
			n = int(h.conns.Add(1))
		}
		h.talking.Go(func() {
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(tooLate))
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				select {
				case <-h.closed:
					_ = c.SetDeadline(time.Now())
				case <-stop:
				}
			}()
			h.greet(&talk{Conn: c, host: h, nth: n})
		})
	}
}

// hold keeps a connection that nobody speaks on.
func (h *host) hold(c net.Conn) {
	h.talking.Go(func() {
		<-h.closed
		_ = c.Close()
	})
}

func (h *host) close() {
	close(h.closed)
	_ = h.listener.Close()
	h.talking.Wait()
}

// greet does what comes before HTTP.
func (h *host) greet(t *talk) {
	if h.raw != nil && t.nth > 1 {
		h.raw(t)
		return
	}
	switch {
	case h.h2 != nil:
		h.serveH2(t)
		return
	case h.tls != nil:
		s := h.tls(t.nth)
		if s.instead != nil {
			s.instead(t)
			return
		}
		server := tls.Server(t.Conn, s.config)
		if server.Handshake() != nil {
			return
		}
		t.Conn = server
	}
	t.reader = bufio.NewReader(t.Conn)
	for t.exchange() {
	}
}
