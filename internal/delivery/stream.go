package delivery

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"market/internal/call"
	"market/internal/refusal"
	"market/internal/upstream"
)

// A Responder passes a streamed answer on to the caller as it comes. It is the door's; a nil one is a connection that can carry no stream. Each of
// its methods returns when the connection has taken what it was given, and gives up after limit: the connection is of no use then.
type Responder interface {
	// Begin sends what is known before the first byte: the call, its settlement, and the service's status and headers. It is called once at most.
	Begin(head Answer, limit time.Duration) error
	Write(piece []byte, limit time.Duration) error
	// Abort has a write that is under way give up, and every later one. It may come at any time.
	Abort()
}

// StreamLimits are what a caller may cost while it reads a stream. The zero value has those that we promise.
type StreamLimits struct {
	// Rate is how many bytes a second a caller has to read; zero: 1 KiB.
	Rate int
	// Slow is how much longer than a reader of that a caller may take; zero: 30 s.
	Slow time.Duration
	// Caller is how long a stream may wait for its caller in all; zero: 5 min. The lease of the call is longer by this.
	Caller time.Duration
	// AtOnce is how many streams one process carries; zero: 1000.
	AtOnce int
}

const (
	rateDefault   = 1 << 10
	slowDefault   = 30 * time.Second
	callerDefault = 5 * time.Minute
	atOnceDefault = 1000
)

func (l StreamLimits) orDefault() StreamLimits {
	l.Rate = cmp.Or(l.Rate, rateDefault)
	l.Slow = cmp.Or(l.Slow, slowDefault)
	l.Caller = cmp.Or(l.Caller, callerDefault)
	l.AtOnce = cmp.Or(l.AtOnce, atOnceDefault)
	return l
}

// time is what a reader of Rate takes for so many bytes.
func (l StreamLimits) time(bytes int) time.Duration {
	return time.Duration(bytes) * time.Second / time.Duration(l.Rate)
}

// A pace is how a caller keeps up with a stream. Only time counts in which its connection took nothing more.
type pace struct {
	behind  time.Duration // a reader of Rate
	blocked time.Duration // in all
}

// limit is how long a piece of so many bytes may take; zero or less: no longer at all.
func (p pace) limit(l StreamLimits, bytes int) time.Duration {
	return min(l.Slow-p.behind+l.time(bytes), l.Caller-p.blocked)
}

// after is the pace after a piece that took so long. What was read fast earlier gives no credit for later.
func (p pace) after(l StreamLimits, took time.Duration, bytes int) pace {
	p.blocked += took
	p.behind = max(0, p.behind+took-l.time(bytes))
	return p
}

// A relay is the caller's side of a stream.
type relay struct {
	to     Responder
	head   Answer
	limits StreamLimits
	pace   pace
	caller context.Context // ends when the caller leaves
	end    context.CancelCauseFunc
	unmet  error // the caller could not be told that the stream begins
	begun  bool  // a piece came
}

// Begin implements upstream.Sink. A service that has sent nothing but headers has delivered nothing: until its first byte comes it is waited for as in
// any other call, whether its caller is there or not.
func (r *relay) Begin(status int, header http.Header) error {
	head := r.head
	head.Status, head.Header = status, header
	r.unmet = r.timed(0, func(limit time.Duration) error { return r.to.Begin(head, limit) })
	return nil
}

// Write implements upstream.Sink.
func (r *relay) Write(piece []byte) error {
	if r.unmet != nil {
		return r.unmet
	}
	if !r.begun {
		// Whether the caller is there is seen from now on also while the service says nothing.
		r.begun = true
		context.AfterFunc(r.caller, func() { r.end(errLeft) })
	}
	return r.timed(len(piece), func(limit time.Duration) error { return r.to.Write(piece, limit) })
}

func (r *relay) timed(bytes int, write func(limit time.Duration) error) error {
	limit := r.pace.limit(r.limits, bytes)
	if limit <= 0 {
		return errSlow
	}
	started := time.Now()
	err := write(limit)
	took := time.Since(started)
	if err != nil && took >= limit {
		return errSlow
	}
	r.pace = r.pace.after(r.limits, took, bytes)
	return err
}

// Why a stream is ended from our side.
var (
	errSlow     = &upstream.Stop{Reason: call.CallerLeft, Detail: "the caller read the stream too slowly"}
	errLeft     = &upstream.Stop{Reason: call.CallerLeft, Detail: "the caller left before the end of the stream"}
	errStopping = &upstream.Stop{Reason: call.Interrupted, Detail: "we stopped while the stream was under way"}
)

// stream asks the service and passes its answer on. From its first byte on the stream ends when the caller leaves: nobody could get the rest. Before
// that a caller that leaves changes nothing, as in any other call.
func (p *Path) stream(ctx context.Context, r Request, ask upstream.Request, head Answer) upstream.Result {
	own, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(p.streaming, func() {
		end(errStopping)
		r.Responder.Abort() // its caller may take nothing for as long as a write may wait
	})()
	return p.Upstream.Stream(own, ask, &relay{to: r.Responder, head: head, limits: p.Streams.orDefault(), caller: ctx, end: end})
}

// EndStreams ends the streams that are under way, and those that begin later: the program stops and can wait for them no longer. Each is
// recorded as interrupted and refunded.
func (p *Path) EndStreams() { p.endStreams() }

// carried refuses a stream to a connection that cannot tell its end from a break: the caller would take half an answer for a whole one.
func carried(r Request) *refusal.Error {
	if r.Target.Endpoint.Stream && r.Responder == nil {
		return refusal.New(call.InputInvalid, "this endpoint answers with a stream, and HTTP/1.0 cannot carry one: ask with HTTP/1.1 or later")
	}
	return nil
}

// leaseOf is how long a call belongs to the process that asks for it: as long as the service and its caller may take together, and the record.
func (p *Path) leaseOf(r Request) time.Duration {
	lease := r.Target.Endpoint.Timeout + askGrace
	if r.Target.Endpoint.Stream {
		lease += p.Streams.orDefault().Caller
	}
	return lease
}

// describe is what the terms of an endpoint say about it. That a stream is not kept comes first, because a long description is cut at its end.
func describe(t string, stream bool) string {
	if !stream {
		return t
	}
	const streamed = "Streamed, not kept: it cannot be fetched again."
	if t == "" {
		return streamed
	}
	return streamed + " " + t
}
