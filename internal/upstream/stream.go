package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

// pieceBytesMax is the most that is read before it is passed on, and all that a stream takes of our memory.
const pieceBytesMax = 32 << 10

// A Sink takes a streamed answer as it comes. Its error ends the stream; a *Stop says whose doing that was, and any other is the caller's leaving.
type Sink interface {
	// Begin takes the status and the headers, before the first byte and once.
	Begin(status int, header http.Header) error
	// Write takes a piece and returns when it is on its way. The bytes are only lent.
	Write(piece []byte) error
}

// A Stop is why a stream was ended from our side: as the error of a Sink, or as the cause with which the context of Client.Stream ended.
type Stop struct {
	Reason call.Reason
	Detail string
}

func (s *Stop) Error() string { return s.Detail }

// errKeptWaiting is the cause of a stream whose service took longer than its listing allows.
var errKeptWaiting = errors.New("kept waiting")

// Stream sends a request as Ask does, and passes the body of an answer that counts as served on as it comes. Result.Streamed says that it began;
// any other answer is a Result as Ask gives it. Only the service's side decides how a stream ends: served where its framing says so,
// failed where it breaks, pauses or lasts longer than its listing allows, or is larger. Time in which the sink is busy is not the service's.
func (c *Client) Stream(parent context.Context, r Request, to Sink) Result {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	p, began := &progress{stop: func() { cancel(nil) }}, c.now()
	s := &flow{endpoint: r.Endpoint, ctx: ctx, progress: p, to: to, waits: newWaits(r.Endpoint, func() { cancel(errKeptWaiting) })}
	s.blame = func(err error) cause { return c.blame(parent, err, p, began) }
	s.waits.begin()
	result := c.exchange(ctx, r, p, s.why, s.pass)
	s.waits.end()
	result.Latency = s.waits.waited
	return result.ended(r.Service)
}

// A flow is one answer on its way through.
type flow struct {
	endpoint *catalog.Endpoint
	ctx      context.Context
	progress *progress
	blame    func(error) cause
	to       Sink
	waits    *waits
}

// pass reads the answer and passes it on.
func (s *flow) pass(response *http.Response) Result {
	s.waits.end()
	status, limit := response.StatusCode, int64(s.endpoint.MaxResponseBytes)
	tooLarge := cause{call.UpstreamTooLarge, fmt.Sprintf("the service's stream is larger than the %d bytes that its listing allows", limit)}
	header, readable := answerHeader(response.Header)
	switch {
	case !readable:
		return failed(unreadable, status, nil)
	case status == http.StatusNoContent:
		return Result{Reason: call.OK, Status: status, Header: header} // there is nothing to stream
	case response.ContentLength > limit:
		return failed(tooLarge, status, nil)
	case !framed(response):
		return failed(cause{call.UpstreamBadResponse,
			"the service's stream has neither chunks nor a length, so nobody could tell its end from a broken connection"}, status, nil)
	}
	if err := s.to.Begin(status, header); err != nil {
		return s.stopped(status, err)
	}
	var passed int64
	piece := make([]byte, pieceBytesMax)
	for {
		s.waits.begin()
		n, err := response.Body.Read(piece)
		s.waits.end()
		if passed += int64(n); passed > limit {
			return streamed(failed(tooLarge, status, nil))
		}
		if n > 0 {
			if err := s.to.Write(piece[:n]); err != nil {
				return s.stopped(status, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF): // of net/http: the end that the framing announced
			return streamed(Result{Reason: call.OK, Status: status})
		case err != nil:
			return streamed(failed(s.why(err), status, err))
		}
	}
}

// framed says whether the end of an answer can be told from a connection that broke: by its chunks, its length, or the frames of HTTP/2. That TLS
// signs the end of a connection is of no help: crypto/tls takes one that is not signed, too.
func framed(response *http.Response) bool {
	return response.ProtoMajor >= 2 || response.ContentLength >= 0 || len(response.TransferEncoding) > 0
}

func streamed(r Result) Result {
	r.Streamed = true
	return r
}

// stopped ends a stream that the sink takes no more of.
func (s *flow) stopped(status int, err error) Result {
	is := cause{call.CallerLeft, "the caller left before the end of the stream"}
	if stop, ok := errors.AsType[*Stop](err); ok {
		is = cause{stop.Reason, stop.Detail}
	}
	return streamed(failed(is, status, err))
}

// why says whose doing an error of the service's side was. Where we ended the stream ourselves, that is why, and not what net/http made of it.
func (s *flow) why(err error) cause {
	s.waits.end()
	over := context.Cause(s.ctx)
	if stop, ok := errors.AsType[*Stop](over); ok {
		return cause{stop.Reason, stop.Detail}
	}
	if !errors.Is(over, errKeptWaiting) {
		return s.blame(err)
	}
	is := s.blame(context.DeadlineExceeded)
	if is.reason == call.UpstreamTimeout && s.progress.connected.Load() {
		is.detail = s.waits.why()
	}
	return is
}

// waits bounds how long a service may keep a stream waiting: at once, also for its first byte, and in all. A wait that is no more begun than
// ended counts nothing, so ending twice is harmless.
type waits struct {
	endpoint *catalog.Endpoint
	timer    *time.Timer
	since    time.Time // zero: nobody waits
	waited   time.Duration
}

func newWaits(e *catalog.Endpoint, over func()) *waits {
	w := &waits{endpoint: e, timer: time.AfterFunc(e.IdleTimeout, over)}
	w.timer.Stop()
	return w
}

func (w *waits) begin() {
	w.since = time.Now()
	w.timer.Reset(min(w.endpoint.IdleTimeout, w.left()))
}

func (w *waits) end() {
	if w.since.IsZero() {
		return
	}
	w.timer.Stop()
	w.waited += time.Since(w.since)
	w.since = time.Time{}
}

func (w *waits) left() time.Duration { return w.endpoint.Timeout - w.waited }

// why says which limit was met.
func (w *waits) why() string {
	if w.left() <= 0 {
		return fmt.Sprintf("the service's stream was not over after %s", w.endpoint.Timeout)
	}
	return fmt.Sprintf("the service sent nothing for %s", w.endpoint.IdleTimeout)
}
