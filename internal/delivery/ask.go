package delivery

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/crash"
	"market/internal/refusal"
	"market/internal/upstream"
)

// probe refuses where the service does not answer its liveness probe. The verdict may be up to its TTL old.
func (p *Path) probe(ctx context.Context, r Request) *refusal.Error {
	v, err := p.Prober.Live(ctx, p.asOfNow(r.Target).Service)
	if err != nil {
		return refusal.New(call.Internal, "").WithCause(err)
	}
	if !v.Live {
		return p.notAlive(v)
	}
	return nil
}

// notAlive tells a service that does not live from trouble of ours that kept us from seeing whether it does.
func (p *Path) notAlive(v upstream.Verdict) *refusal.Error {
	until := p.Now().Add(p.Prober.Holds(v))
	switch v.Reason {
	case call.EgressDown, call.LocalError:
		return refusal.New(call.NotReady, "services cannot be reached at the moment: %s", v.Why).WithUntil(until)
	}
	return refusal.New(call.NotLive, "%s", v.Why).WithUntil(until)
}

// resting says why a service gets no work, from what the database knew when it wrote the settlement.
func resting(s standing) *refusal.Error {
	switch {
	case !s.listed:
		return refusal.New(call.Withdrawn, "the service or this endpoint left the shelf while the payment was settled")
	case s.cooling:
		return refusal.New(call.InCooldown, "the service failed a moment ago and rests before it gets work again")
	}
	return nil
}

// asOfNow is a target as it is listed now: a request may have been under way for a while, and what it is asked with is what holds when it is asked.
// Whether it streams, and how long it may take at most, stay: its payer was told the one, and its lease covers the other.
func (p *Path) asOfNow(t catalog.Target) catalog.Target {
	current := p.Catalog.Current()
	s, known := current.Service(t.Service.ID)
	e, sold := current.Endpoint(t.Endpoint.ID)
	if !known || !sold {
		return t
	}
	now := *e
	now.Timeout, now.Stream = min(e.Timeout, t.Endpoint.Timeout), t.Endpoint.Stream
	if now.Stream && !e.Stream {
		now.IdleTimeout = t.Endpoint.IdleTimeout
	}
	t.Service, t.Endpoint = s, &now
	return t
}

// ask calls the upstream, on a deadline of its own. What is sold as a stream goes to the caller while it comes, under the head of what is known by
// then; everything else is only brought back. A panic of ours is our failure and ends as one: the payment is settled already, and an outcome
// has to be recorded.
func (p *Path) ask(ctx context.Context, id call.ID, r Request, head Answer) (result upstream.Result) {
	started := time.Now()
	defer func() {
		if cause := recover(); cause != nil {
			result = upstream.Result{Outcome: call.Failed, Reason: call.LocalError, Latency: time.Since(started), Error: "local: panic",
				Err: fmt.Errorf("ask for call %s: panic: %v\n%s", id, cause, debug.Stack())}
		}
	}()
	body, err := r.Body.Bytes()
	if err != nil {
		return upstream.Result{Outcome: call.Failed, Reason: call.LocalError, Error: "local: no body", Err: err}
	}
	crash.Before(crash.Ask)
	ask := upstream.Request{
		Service: r.Target.Service, Endpoint: r.Target.Endpoint, Path: r.Target.UpstreamPath, CallID: id, Method: r.Method,
		RawQuery: r.RawQuery, Header: r.Header, Body: body,
	}
	if r.Target.Endpoint.Stream {
		result = p.stream(ctx, r, ask, head)
	} else {
		result = p.Upstream.Ask(context.WithoutCancel(ctx), ask)
	}
	crash.After(crash.Ask)
	return result
}

// asExampled says whether a request asks for just what the listing gives as its example, so that refusing it is the listing's fault. A status
// about the form of the request or of the answer, and a caller that names forms of its own, are no evidence of that.
func asExampled(r Request, status int) bool {
	if status == http.StatusNotAcceptable || status == http.StatusUnsupportedMediaType {
		return false
	}
	if accept := r.Header.Get("Accept"); accept != "" && accept != "*/*" && accept != r.Target.Endpoint.MIMEType {
		return false
	}
	if language := r.Header.Get("Accept-Language"); language != "" && language != "*" {
		return false
	}
	in, err := inputOf(r)
	return err == nil && r.Target.Endpoint.MatchesExample(in)
}

// answered ends a delivery by what came back. A 4xx to the provider's own example is no caller's mistake: the listing is broken.
func (d Delivery) answered(result upstream.Result, r Request) Delivery {
	d.Status, d.Latency, d.RetryAfter, d.Error, d.Said = result.Status, result.Latency, result.RetryAfter, result.Error, result.Said
	reason, detail := result.Reason, result.Detail
	if reason == call.RejectedByService && d.Origin.Counts() && asExampled(r, result.Status) {
		reason, detail = call.ListingBroken, "the service refuses the example input of its own listing"
	}
	return d.end(reason, detail)
}
