package hostiletest

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
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

// A talk is one connection to a host.
type talk struct {
	net.Conn
	host   *host
	reader *bufio.Reader
	nth    int           // of the host's connections since it is listed, from 1; 0 before
	asks   int           // requests for work on this connection so far
	asking *http.Request // whose head was read last
	keep   bool          // go on with this connection after the answer
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

// exchange answers one request; false where the connection is over.
func (t *talk) exchange() bool {
	r, err := http.ReadRequest(t.reader)
	if err != nil {
		return false
	}
	t.asking, t.keep = r, false
	t.host.paths.Store(r.RequestURI, true)
	if r.RequestURI == probeTo {
		if t.host.probe != nil && t.host.listed.Load() {
			t.host.probe(t)
			return false
		}
		// The next connection is another one wherever connections matter, and the same one wherever that is what matters.
		fresh := t.host.tls != nil || t.host.raw != nil || t.host.name != ""
		t.keep = !fresh
		t.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + map[bool]string{true: "Connection: close\r\n"}[fresh] + forged + "\r\nok")
		return t.keep
	}
	t.asks++
	work := t.host.work
	if t.host.asked.Add(1) > 1 && t.host.again != nil {
		work = t.host.again
	}
	work(t)
	return t.keep
}

// say writes what it can.
func (t *talk) say(text string) { _, _ = io.WriteString(t.Conn, text) }

// eat reads the body of the request.
func (t *talk) eat() { _, _ = io.Copy(io.Discard, t.asking.Body) }

// wait waits until the other side has gone, or the test has.
func (t *talk) wait() { _, _ = io.Copy(io.Discard, t.Conn) }

// reset ends the connection with an RST.
func (t *talk) reset() {
	c := t.Conn
	if s, ok := c.(*tls.Conn); ok {
		c = s.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// closeWrite ends our half of the connection.
func (t *talk) closeWrite() {
	if tcp, ok := t.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}

// pour writes a chunk again and again until nobody takes it.
func (t *talk) pour(chunk string) {
	for {
		if _, err := io.WriteString(t.Conn, chunk); err != nil {
			return
		}
	}
}

// drip writes text byte by byte, with a pause before each, until nobody takes it.
func (t *talk) drip(text string, pause time.Duration) {
	for i := range len(text) {
		if !t.pause(pause) {
			return
		}
		if _, err := t.Conn.Write([]byte(text[i : i+1])); err != nil {
			return
		}
	}
	t.wait()
}

// pause waits; false where the test is over.
func (t *talk) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.host.closed:
		return false
	}
}

// forged are headers that a service has no business to send: in them it speaks for us. Every answer that has headers has them, so a row in which
// one comes through fails.
var forged = strings.Join([]string{
	"PAYMENT-RESPONSE: evil", "PAYMENT-REQUIRED: evil", "PAYMENT-SIGNATURE: evil", "X-PAYMENT-RESPONSE: evil", "X-Payment: evil",
	"Market-Call: evil", "Market-Outcome: evil", "Market-Secret: evil", "Set-Cookie: evil=1; Path=/", "Set-Cookie2: evil=1",
	"Access-Control-Allow-Origin: https://evil.test", "Access-Control-Allow-Credentials: evil", "Access-Control-Expose-Headers: evil",
	"Strict-Transport-Security: max-age=0; evil", "Cache-Control: public, evil", "Expires: evil", "Age: evil", "Vary: evil", "Pragma: evil",
	"Alt-Svc: h3=\"evil.test:443\"", "Link: <https://evil.test>; rel=preload", "Refresh: 0; url=https://evil.test", "Clear-Site-Data: \"evil\"",
	"Content-Security-Policy: evil", "Service-Worker-Allowed: /evil", "NEL: evil", "Report-To: evil", "Server-Timing: evil", "Server: evil",
	"Www-Authenticate: Basic realm=evil", "Proxy-Authenticate: evil", "Via: evil", "Upgrade-Insecure-Requests: evil", "X-Evil: evil", "Warning: evil",
}, "\r\n") + "\r\n"
