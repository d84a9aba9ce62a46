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

const (
	// pieceBytesMax is the most that is read before it is passed on. With what HTTP/2 may bring ahead of that (see Client), it is all that a stream
	// takes of our memory.
	pieceBytesMax = 8 << 10
	// stallMax is how long a sink may take for a piece, and stallsMax for all, until a break could be its doing: servers give up a connection that
	// takes nothing for a while.
	stallMax  = 2 * time.Second
	stallsMax = 10 * time.Second
	// aliveAfter is how long a service has to be waited for so that what it then sends cannot have been on its way before.
	aliveAfter = time.Second
)

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
// failed where it breaks, pauses or lasts longer than its listing allows, or is larger. Time in which the sink is busy is not the service's, and
// neither is a break that the sink can have caused by that.
func (c *Client) Stream(parent context.Context, r Request, to Sink) Result {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	p, began := &progress{stop: func() { cancel(nil) }}, c.now()
	s := &flow{endpoint: r.Endpoint, ctx: ctx, progress: p, to: to, waits: newWaits(r.Endpoint, func() { cancel(errKeptWaiting) })}
	s.blame = func(err error) cause { return c.blame(parent, err, p, began) }
	s.waits.begin()
	result := c.exchange(ctx, r, p, s.why, s.pass)
	s.waits.endAt(result.known())
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
	stall    stall
}

// pass reads the answer and passes it on.
func (s *flow) pass(response *http.Response) Result {
	s.waits.end()
	status, limit := response.StatusCode, int64(s.endpoint.MaxResponseBytes)
	tooLarge := cause{call.UpstreamTooLarge, fmt.Sprintf("the service's stream is larger than the %d bytes that its listing allows", limit)}
	header, readable := answerHeader(response.Header)
	switch {
	case !readable:
		return failed(unreadable, status, nil).of("http: content encoding")
	case status == http.StatusNoContent:
		return Result{Reason: call.OK, Status: status, Header: header} // there is nothing to stream
	case response.ContentLength > limit:
		return failed(tooLarge, status, nil).of("http: too large")
	case !framed(response):
		return failed(cause{call.UpstreamBadResponse,
			"the service's stream has neither chunks nor a length, so nobody could tell its end from a broken connection"}, status, nil).of("http: no framing")
	}
	seen := newTasting(response)
	if err := s.to.Begin(status, header); err != nil {
		return s.stopped(status, err).seen(seen)
	}
	var passed int64
	piece := make([]byte, pieceBytesMax)
	for {
		s.waits.begin()
		n, err := response.Body.Read(piece)
		if waited := s.waits.end(); n > 0 {
			s.stall.heard(waited)
			seen.see(piece[:n])
		}
		if passed += int64(n); passed > limit {
			return streamed(failed(tooLarge, status, nil).of("http: too large").seen(seen))
		}
		if n > 0 {
			started := time.Now()
			if err := s.to.Write(piece[:n]); err != nil {
				return s.stopped(status, err).seen(seen)
			}
			s.stall.took(time.Since(started))
		}
		switch {
		case errors.Is(err, io.EOF): // of net/http: the end that the framing announced
			return streamed(Result{Reason: call.OK, Status: status})
		case err != nil:
			is := s.why(err)
			if is.reason == call.UpstreamBadResponse && s.stall.explains() {
				is = cause{call.CallerStalled, "the stream broke after its caller had held it up"}
			}
			return streamed(failed(is, status, err).seen(seen))
		}
	}
}

// framed says whether the end of an answer can be told from a connection that broke: by its chunks, its length, or the frames of HTTP/2. That TLS
// signs the end of a connection is of no help: crypto/tls takes one that is not signed, too.
func framed(response *http.Response) bool {
	return response.ProtoMajor >= 2 || response.ContentLength >= 0 || len(response.TransferEncoding) > 0
}

// seen is a failure of a stream of which that much came.
func (r Result) seen(t *tasting) Result {
	r.tasted = t
	return r
}

func streamed(r Result) Result {
	r.Streamed = true
	return r
}

// stopped ends a stream that the sink takes no more of.
func (s *flow) stopped(status int, err error) Result {
	is := cause{call.CallerLeft, "the caller left before the end of the stream"}
	for _, why := range []error{err, context.Cause(s.ctx)} {
		if stop, ok := errors.AsType[*Stop](why); ok {
			is = cause{stop.Reason, stop.Detail}
			break
		}
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

// end returns how long this wait was.
func (w *waits) end() (waited time.Duration) { return w.endAt(time.Now()) }

func (w *waits) endAt(at time.Time) (waited time.Duration) {
	if w.since.IsZero() {
		return 0
	}
	w.timer.Stop()
	waited = at.Sub(w.since)
	w.waited += waited
	w.since = time.Time{}
	return waited
}

func (w *waits) left() time.Duration { return w.endpoint.Timeout - w.waited }

// why says which limit was met.
func (w *waits) why() string {
	if w.left() <= 0 {
		return fmt.Sprintf("the service's stream was not over after %s", w.endpoint.Timeout)
	}
	return fmt.Sprintf("the service sent nothing for %s", w.endpoint.IdleTimeout)
}

// A stall is how a sink held a stream up.
type stall struct {
	longest time.Duration // for one piece, since the service was last known to be there
	all     time.Duration
}

func (s *stall) took(busy time.Duration) {
	s.longest = max(s.longest, busy)
	s.all += busy
}

// heard is that a piece came for which the service was waited for. What was buffered on the way comes at once, also where the service hung up long ago.
func (s *stall) heard(waited time.Duration) {
	if waited >= aliveAfter {
		s.longest = 0
	}
}

// explains says whether a break can have come of it.
func (s *stall) explains() bool { return s.longest > stallMax || s.all > stallsMax }
