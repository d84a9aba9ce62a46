package server

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// Readable makes the answers of the HTTP parser itself readable by scripts, and kept by nobody, like all others: a request that is not
// HTTP, or whose headers are too large, is answered by net/http before any handler of ours, and with headers that can not be configured.
func Readable(l net.Listener) net.Listener { return readable{l} }

type readable struct{ net.Listener }

func (l readable) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &readableConn{Conn: c}, nil
}

// A readableConn knows whether a handler answers on it. While none does, what is written is the parser's.
type readableConn struct {
	net.Conn
	handled atomic.Bool
}

var (
	// parserAnswer is how every answer of the parser goes on after its status.
	parserAnswer = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	parserStatus = []byte("HTTP/1.1 ")
)

// Write adds our manners to an answer of the parser, which it writes at once and closes the connection after.
func (c *readableConn) Write(b []byte) (int, error) {
	at := bytes.Index(b, parserAnswer)
	if c.handled.Load() || at < 0 || !bytes.HasPrefix(b, parserStatus) || bytes.Contains(b[:at], []byte("\r\n")) {
		return c.Conn.Write(b)
	}
	out := append([]byte{}, b[:at]...)
	for _, header := range manners {
		out = append(out, "\r\n"+header[0]+": "+header[1]...)
	}
	if _, err := c.Conn.Write(append(out, b[at:]...)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CloseWrite lets the parser's answer arrive although the rest of the request is not read.
func (c *readableConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// setWriteBuffer bounds what the machine keeps of what is written. Where it can not, it keeps more.
func (c *readableConn) setWriteBuffer(bytes int) {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(bytes)
	}
}

type connKey struct{}

// tellConn lets a connection know when a handler answers on it.
func tellConn(s *http.Server) {
	inner := s.Handler
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if r, ok := c.(*readableConn); ok && state == http.StateIdle {
			r.handled.Store(false)
		}
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*readableConn); ok {
			c.handled.Store(true)
		}
		inner.ServeHTTP(w, r)
	})
}
