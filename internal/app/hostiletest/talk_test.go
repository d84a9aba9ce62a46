package hostiletest

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

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
