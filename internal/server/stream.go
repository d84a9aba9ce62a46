package server

import (
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"market/internal/delivery"
)

// A responder is the door's side of a streamed answer. Market-Outcome is a trailer of it: how the call ended is known at the end.
type responder struct {
	c    echo.Context
	wire *http.ResponseController // of the connection; echo's own Flush hides errors

	mu      sync.Mutex
	aborted bool
}

// sendBytesMax is what the machine may keep of a stream that its caller has not taken: what is kept takes no time, and a caller that reads slowly, but
// fast enough, must not seem to read nothing while it empties a large buffer.
const sendBytesMax = 64 << 10

// responderOf returns what takes a streamed answer to a request; nil for a connection that can carry none. HTTP/1.0 has no chunks, so half an
// answer would look like a whole one.
func responderOf(c echo.Context) delivery.Responder {
	if !c.Request().ProtoAtLeast(1, 1) {
		return nil
	}
	return &responder{c: c, wire: http.NewResponseController(c.Response().Writer)}
}

// Begin implements delivery.Responder.
func (r *responder) Begin(head delivery.Answer, limit time.Duration) error {
	h := r.c.Response().Header()
	writeHead(h, head)
	writeServiceHead(h, head)
	h.Set("Trailer", headerOutcome)
	h.Set("X-Accel-Buffering", "no") // proxies of nginx's kind would hold it until its end
	if conn, ok := r.c.Request().Context().Value(connKey{}).(*readableConn); ok {
		conn.setWriteBuffer(sendBytesMax)
	}
	r.limit(limit)
	r.c.Response().WriteHeader(head.Status)
	return r.wire.Flush()
}

// Write implements delivery.Responder.
func (r *responder) Write(piece []byte, limit time.Duration) error {
	r.limit(limit)
	if _, err := r.c.Response().Write(piece); err != nil {
		return err
	}
	return r.wire.Flush()
}

// limit bounds the next writes.
func (r *responder) limit(limit time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.aborted {
		limit = -time.Second
	}
	_ = r.wire.SetWriteDeadline(time.Now().Add(limit)) // as in limitWrite
}

// Abort implements delivery.Responder.
func (r *responder) Abort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aborted = true
	_ = r.wire.SetWriteDeadline(time.Now().Add(-time.Second)) // as in limitWrite
}

// finishStream ends a stream that was served, and breaks the connection of any other: a stream that ends looks whole. It does not return then.
func finishStream(c echo.Context, a delivery.Answer) {
	if !a.Served() {
		logOf(c).aborted = true
		panic(http.ErrAbortHandler)
	}
	limitWrite(c)
	c.Response().Header().Set(headerOutcome, string(a.Outcome))
}
