package hostiletest

import (
	"net"
	"strings"
	"syscall"
	"time"
)

// connectionRows are what happens below HTTP. raw takes the connection after the probe's.
func connectionRows() []row {
	later := func(raw func(*talk)) plan { return plan{work: good, raw: raw} }
	const half = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + done
	return []row{
		{name: "it closes its port after the probe", plan: plan{work: good, raw: good, probe: func(t *talk) {
			_ = t.host.listener.Close()
			t.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}}, asked: none, want: unreachable},
		{name: "it never accepts", plan: plan{work: good, raw: good, probe: func(t *talk) {
			t.host.fill()
			t.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}}, listing: soon(), asked: none, want: timeout},
		{name: "it accepts and closes", plan: later(func(*talk) {}), asked: none, want: unreachable},
		{name: "it accepts and resets", plan: later(func(t *talk) { t.reset() }), asked: none, want: unreachable},
		{name: "it accepts and does not read", plan: later(func(t *talk) {
			if tcp, ok := t.Conn.(*net.TCPConn); ok {
				_ = tcp.SetReadBuffer(1)
			}
			t.pause(tooLate)
		}), big: true, listing: soon(), asked: none, want: timeout},
		{name: "it reads and never answers", plan: working(func(t *talk) { t.eat(); t.wait() }), listing: soon(), want: timeout},
		{name: "it answers after the time is over", plan: working(func(t *talk) { t.eat(); t.pause(1300 * time.Millisecond); t.say(answer("200 OK", done)) }), listing: soon(), want: timeout},
		{name: "it closes after the request", plan: working(func(t *talk) { t.eat() }), want: unreachable},
		{name: "it resets after the request", plan: working(func(t *talk) { t.eat(); t.reset() }), want: unreachable},
		{name: "it resets within the request", plan: working(func(t *talk) { t.reset() }), big: true, want: unreachable},
		{name: "it closes its half after the request", plan: working(func(t *talk) { t.eat(); t.closeWrite(); t.wait() }), want: unreachable},
		{name: "it resets within its answer (B93)", plan: working(func(t *talk) { t.eat(); t.say(half); t.pause(50 * time.Millisecond); t.reset() }), want: badResponse},
		{name: "it resets within its headers", plan: working(func(t *talk) {
			t.eat()
			t.say("HTTP/1.1 200 OK\r\nX-Evil: ")
			t.pause(50 * time.Millisecond)
			t.reset()
		}), want: badResponse},
		{name: "it closes its half within its answer (B93)", plan: working(func(t *talk) { t.eat(); t.say(half); t.closeWrite(); t.wait() }), want: badResponse},
		{name: "it answers before it has read the request", plan: working(func(t *talk) { t.say(answer("200 OK", done, typeJSON)); t.eat(); t.wait() }), big: true, want: serves(done)},
		{name: "it refuses before it has read the request, and closes", plan: working(func(t *talk) {
			t.say(answer("413 Content Too Large", "evil", "Connection: close"))
			t.closeWrite()
			t.wait()
		}), big: true, want: turnsDown(413)},
		{name: "it answers and keeps the connection open", plan: working(func(t *talk) { t.eat(); t.say(answer("200 OK", done, typeJSON)); t.wait() }), want: serves(done)},
		{name: "it closes a kept connection when the next request comes (POST: asked once)", plan: working(func(t *talk) { t.eat() }), want: unreachable},
		{name: "it closes a kept connection when the next request comes (GET: asked once)", plan: working(func(t *talk) { t.eat() }), get: true, want: unreachable},
		{name: "it resets a kept connection when the next request comes (GET: asked once)", plan: working(func(t *talk) { t.eat(); t.reset() }), get: true, want: unreachable},
		{name: "it serves every second GET and hangs up on the others (asked once)", plan: plan{work: func(t *talk) { t.eat() }, again: good}, get: true, want: unreachable},
		{name: "it answers 408 at once to a kept connection", plan: working(func(t *talk) { t.eat(); t.say(answer("408 Request Timeout", "", "Connection: close")) }), get: true, want: turnsDown(408)},
		{name: "it wants to be told to go on", plan: working(func(t *talk) { t.say("HTTP/1.1 100 Continue\r\n\r\n"); good(t) }), big: true, want: serves(done)},
		{name: "it answers a byte in a packet", plan: working(func(t *talk) {
			t.eat()
			for _, b := range []byte(strings.Replace(answer("200 OK", done, typeJSON), forged, "", 1)) {
				_, _ = t.Write([]byte{b})
			}
		}), want: serves(done)},
	}
}

// fill takes every place in the queue of connections that nobody accepts any more.
func (h *host) fill() {
	h.deaf.Store(true)
	raw, err := h.listener.(*net.TCPListener).SyscallConn() //nolint:forcetypeassert // a TCP listener
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), 0) }) //nolint:gosec // a file descriptor
	for {
		c, err := net.DialTimeout("tcp", h.listener.Addr().String(), 100*time.Millisecond)
		if err != nil {
			return
		}
		h.hold(c)
	}
}
