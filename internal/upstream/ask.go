package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

// A Request is a caller's request to an endpoint of a service.
type Request struct {
	Service  *catalog.Service
	Endpoint *catalog.Endpoint
	Path     string // escaped, from catalog.Target.UpstreamPath
	CallID   call.ID
	Method   string
	RawQuery string
	Header   http.Header // the caller's; what of it is sent on is decided here
	Body     []byte
}

// A Result is how a service answered, or why it did not. Whose doing it was is the party of call.RowOf(Reason).
type Result struct {
	Outcome       call.Outcome
	Reason        call.Reason
	Detail        string      // for people; public
	Status        int         // 0 where no answer came
	Header        http.Header // of a served answer: what the caller may see of it
	Body          []byte      // of a served answer, as it came, content encoding and all
	ServiceAnswer []byte      // of an answer that turned the request down: its body, where that is JSON or text, cut to 4 KB
	RetryAfter    time.Duration
	Latency       time.Duration // until it was known how it answered; of a stream: the time in which the service was waited for
	Streamed      bool          // the answer went to a Sink as it came
	Error         string        // of an answer that failed: its kind in a few words of ours, such as "connect: refused"
	Said          call.Said     // what came back with it
	Err           error         // for the log

	tasted *tasting // what Said is made of; nil where nothing was looked at yet
}

// ended sets the outcome that follows from the reason, and hides in the error what was sent for the service alone.
func (r Result) ended(s *catalog.Service) Result {
	if r.Err != nil {
		r.Err = maskOf(s).err(r.Err)
	}
	row, _ := call.RowOf(r.Reason)
	r.Outcome = row.Outcome
	if r.tasted != nil && r.Reason != call.OK {
		r.Said = r.tasted.said(maskOf(s))
	}
	r.tasted = nil
	return r
}

// known is when it was known how the service answered.
func (r Result) known() time.Time {
	if r.tasted != nil && !r.tasted.known.IsZero() {
		return r.tasted.known
	}
	return time.Now()
}

// Ask sends a request to a service, once, and waits for the answer at most as long as the endpoint's timeout. ctx should not end with
// the caller's connection; ending it stops the request and says nothing about the service.
func (c *Client) Ask(ctx context.Context, r Request) Result {
	started := time.Now()
	result := c.ask(ctx, r)
	result.Latency = result.known().Sub(started)
	return result.ended(r.Service)
}

func (c *Client) ask(parent context.Context, r Request) Result {
	ctx, cancel := context.WithTimeout(parent, r.Endpoint.Timeout)
	defer cancel()
	p, began := &progress{stop: cancel}, c.now()
	why := func(err error) cause { return c.blame(parent, err, p, began) }
	return c.exchange(ctx, r, p, why, func(response *http.Response) Result { return c.served(r, response, why) })
}

// exchange sends the request. An answer with a status that the listing promises goes to serve; why says whose doing an error was. What failed says
// of which kind it was, and what came back.
func (c *Client) exchange(ctx context.Context, r Request, p *progress, why func(error) cause, serve func(*http.Response) Result) Result {
	result := c.send(ctx, r, p, why, serve)
	if result.Error == "" {
		result.Error = kindOf(result, p)
	}
	return result
}

func (c *Client) send(ctx context.Context, r Request, p *progress, why func(error) cause, serve func(*http.Response) Result) Result {
	if broken := cmp.Or(r.Service.Broken, r.Endpoint.Broken); broken != "" {
		// Without its key a service would refuse us, and that would look like its own failure.
		return failed(cause{call.LocalError, "the service's listing is broken"}, 0, errors.New(broken)).of("local: broken listing")
	}
	request, err := c.newRequest(p.watch(c.placing(ctx, r.Service)), r)
	if err != nil {
		return failed(cause{call.LocalError, "the request could not be built"}, 0, err).of("local: no request")
	}
	// The transport and not a http.Client: nothing follows redirects or keeps cookies.
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		return failed(why(err), 0, err)
	}
	defer func() { _ = response.Body.Close() }()

	is := statusCause(r.Endpoint, response.StatusCode)
	if is.reason == call.OK {
		p.answered.Store(true)
		result := serve(response)
		if result.Reason != call.OK && result.tasted == nil {
			result.tasted = tasteOf(response, false, p.stop)
		}
		return result
	}
	result := failed(is, response.StatusCode, nil)
	result.tasted = tasteOf(response, is.reason == call.RejectedByService, p.stop)
	switch is.reason {
	case call.RejectedByService:
		result.ServiceAnswer = serviceAnswer(result.tasted, maskOf(r.Service))
	case call.UpstreamThrottled:
		result.RetryAfter = retryAfter(response.Header.Get("Retry-After"), c.now())
	}
	return result
}

func failed(is cause, status int, err error) Result {
	return Result{Reason: is.reason, Detail: is.detail, Status: status, Err: err}
}

// of names the kind of error that a failure is, where its type does not.
func (r Result) of(kind string) Result {
	r.Error = kind
	return r
}

// after is a failure that was found when the body was read, or a part of it.
func (r Result) after(response *http.Response, body []byte, whole bool) Result {
	r.tasted = newTasting(response)
	r.tasted.see(body)
	r.tasted.whole = whole
	return r
}

func (c *Client) newRequest(ctx context.Context, r Request) (*http.Request, error) {
	// A server takes "#" in a request's query for a part of the query. Written out again it would end the query.
	u, err := r.Service.URL(r.Path, strings.ReplaceAll(r.RawQuery, "#", "%23"))
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	request.URL = u
	request.Header = requestHeader(r, c.now())
	askOnce(request)
	return request, nil
}

// askOnce keeps net/http from sending a request again by itself when a kept connection breaks: it does that for methods that it takes for
// harmless, as long as it can have the body again, and for any method where a header names a key. A call is asked once, whatever its method and
// its headers. Over HTTP/2 progress sees to that.
func askOnce(request *http.Request) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		// Not in canonical spelling, which is the same to a server: net/http takes the canonical one for leave to send the request again.
		if values, ok := request.Header[name]; ok {
			delete(request.Header, name)
			request.Header[strings.ToLower(name)] = values
		}
	}
	if catalog.TakesBody(request.Method) {
		return // never repeated once something was written
	}
	request.GetBody = nil
	if request.Body == http.NoBody {
		request.Body = io.NopCloser(strings.NewReader("")) // no body either, and one that net/http does not know to be empty
	}
}

// unreadable is an answer whose bytes have no name that can be relied on.
var unreadable = cause{call.UpstreamBadResponse, "the service's answer has a Content-Encoding that can't be read"}

// served reads the body of an answer with a status that the listing promises.
func (c *Client) served(r Request, response *http.Response, why func(error) cause) Result {
	status, limit := response.StatusCode, int64(r.Endpoint.MaxResponseBytes)
	tooLarge := cause{call.UpstreamTooLarge, fmt.Sprintf("the service's answer is larger than the %d bytes that its listing allows", limit)}
	if catalog.IsEventStream(response.Header.Get("Content-Type")) {
		return failed(cause{call.UpstreamBadResponse,
			`the service answers with an event stream (text/event-stream), and its listing does not say so: it has to be listed with "stream": true`}, status, nil).of("http: event stream")
	}
	bodiless := r.Method == http.MethodHead // whose Content-Length is that of a body that does not come
	if !bodiless && response.ContentLength > limit {
		return failed(tooLarge, status, nil).of("http: too large")
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if int64(len(body)) > limit {
		return failed(tooLarge, status, nil).of("http: too large").after(response, body, false)
	}
	if err != nil {
		return failed(why(err), status, err).after(response, body, false)
	}
	header, ok := answerHeader(response.Header)
	if !ok {
		return failed(unreadable, status, nil).of("http: content encoding").after(response, body, true)
	}
	if r.Endpoint.ChecksOutput() && !bodiless && status <= 299 {
		err := c.checkOutput(r.Endpoint, header.Get("Content-Encoding"), body)
		if errors.Is(err, errUnpackedTooLarge) {
			return failed(cause{call.UpstreamTooLarge, fmt.Sprintf("the service's answer is larger than %d bytes when it is unpacked", unpackedBytesMax)}, status, err).
				of("http: too large").after(response, body, true)
		}
		if err != nil {
			return failed(cause{call.UpstreamBadResponse, "the service's answer is not what its listing promises"}, status, err).
				of("schema: not as listed").after(response, body, true)
		}
	}
	return Result{Reason: call.OK, Status: status, Header: header, Body: body}
}
