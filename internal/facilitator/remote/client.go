package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/source"
)

const (
	settleTime     = 90 * time.Second // at most; the caller's context usually ends earlier
	askTime        = 10 * time.Second // of /supported and /verify
	headerBytesMax = 64 << 10

	// Servers drop idle connections after a few seconds, and what is written into such a drop is Unclear for good; so we drop first.
	idleTimeout = 3 * time.Second
)

// Options say where a facilitator is and how to speak to it.
type Options struct {
	Name       string // in our configuration
	URL        string // http(s), without query; a slash at its end does not matter
	Credential Credential
	Resource   string // absolute URL of the market, which x402 v1 wants beside every payment
	Source     source.Source
	Meter      Meter // of that source; nil: nothing is counted, and no outage is kept
	Now        func() time.Time
	// Report hears when the facilitator stops answering /supported as it should, with the reason, and when it does again, with nil. Nil
	// drops it.
	Report func(err error)
}

// A Client speaks to one facilitator. It is safe for concurrent use.
type Client struct {
	opts Options
	base *url.URL
	http *http.Client

	mu    sync.Mutex
	state state
	fails chan struct{} // of capacity 1: wakes Watch when the facilitator begins to fail
}

// New returns a client. It asks nothing before Ask or Watch do.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(o.URL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.RawQuery != "" || base.Fragment != "" || base.User != nil {
		return nil, fmt.Errorf("facilitator %s: its URL is not http(s)://host/path", o.Name)
	}
	if o.Credential == nil {
		o.Credential = Open
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64  // the default of 2 closes most connections under load
	transport.DisableCompression = true // what arrives is what answerMax counts
	transport.MaxResponseHeaderBytes = headerBytesMax
	transport.IdleConnTimeout = idleTimeout
	return &Client{opts: o, base: base, fails: make(chan struct{}, 1), http: &http.Client{
		Transport: transport,
		// A redirect would carry authorization and credential to whoever is named in it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Name is the facilitator's in our configuration.
func (c *Client) Name() string { return c.opts.Name }

// Close gives the idle connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Settle asks the facilitator to put an authorization on the chain. When the context ends before the answer is there, nobody knows what
// it has done: Unclear. The turn's next unit is spent with the first byte that may have left us.
func (c *Client) Settle(ctx context.Context, turn *Turn, n chain.Network, s chain.Signed) Answer {
	const call = "settle"
	body, no := c.prepare(call, n, s)
	if no != nil {
		return Answer{Kind: Unsent, Err: no}
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	got := c.do(ctx, http.MethodPost, call, body)
	if got.sent {
		turn.spend()
	}
	if got.fault != 0 {
		turn.report(ctx, source.Verdict{Kind: source.Troubled})
		no := c.trouble(call, got.fault, got.status, got.err)
		if got.sent {
			return Answer{Kind: Unclear, Err: no}
		}
		if got.fault == Unreached {
			_ = c.keep(nil, 0, no) // nobody is asked to pay before it answers again
		}
		return Answer{Kind: Unsent, Err: no}
	}
	answer, fault := settleAnswer(got.status, got.body, expected{networks: []string{n.ID, n.V1Name}, payer: s.From})
	verdict := c.verdict(got, fault == 0)
	turn.report(ctx, verdict)
	switch {
	case fault == 0 && answer.Kind == Declined && refuses(verdict):
		// What looked like a word on the payment is one on us.
		answer.Kind, answer.Blame, answer.Err = Refused, 0, c.trouble(call, refusalFault(verdict), got.status, nil)
	case fault != 0:
		answer.Err = c.trouble(call, fault, got.status, nil)
	case answer.Kind == Declined || answer.Kind == Pending:
		answer.Err = &DeclinedError{Facilitator: c.opts.Name, Code: answer.Code}
	}
	return answer
}

// prepare makes the body, or says why nothing is to be sent.
func (c *Client) prepare(call string, n chain.Network, s chain.Signed) ([]byte, error) {
	version := c.version(n)
	if version == 0 {
		return nil, c.trouble(call, Unsupported, 0, nil)
	}
	body, err := requestOf(version, n, s, c.opts.Resource)
	if err != nil {
		return nil, c.trouble(call, Unreached, 0, err)
	}
	return body, nil
}

func (c *Client) trouble(call string, fault Fault, status int, err error) *Trouble {
	return &Trouble{Facilitator: c.opts.Name, Call: call, Fault: fault, Status: status, Err: err}
}

// A reply is what came back, or what went wrong on the way.
type reply struct {
	sent       bool // some of the request's body may have left us
	status     int
	body       []byte
	retryAfter time.Duration
	maxAge     time.Duration // by Cache-Control; zero where it gives none
	fault      Fault
	err        error
}

// A tracked body tells when anybody begins to send it. A connection that could not be made, a certificate that is not theirs and a name
// that nobody has end before that.
type tracked struct {
	*bytes.Reader
	begun *atomic.Bool
}

func (t tracked) Read(p []byte) (int, error) {
	t.begun.Store(true)
	return t.Reader.Read(p)
}

// WriteTo is the other way in which a transport takes a body.
func (t tracked) WriteTo(w io.Writer) (int64, error) {
	t.begun.Store(true)
	return t.Reader.WriteTo(w)
}

func (t tracked) Close() error { return nil }

// do makes one request and reads the whole answer, whatever its status is.
func (c *Client) do(ctx context.Context, method, call string, body []byte) reply {
	var begun, connected atomic.Bool
	// The transport tries again by itself where an idle connection turns out to be closed; the last try is what counts.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { connected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	r, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(call).String(), nil)
	if err != nil {
		return reply{fault: Unreached, err: clean(err)}
	}
	if body != nil {
		r.ContentLength = int64(len(body))
		// With it the transport takes another connection where an idle one turned out to be closed before anything was written to it.
		r.GetBody = func() (io.ReadCloser, error) { return tracked{bytes.NewReader(body), &begun}, nil }
		r.Body, _ = r.GetBody()
		r.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodGet {
		r.Header.Set("Cache-Control", "no-cache") // what some cache on the way has kept proves nothing
	}
	r.Header.Set("Accept", "application/json")
	if err := c.opts.Credential.sign(r, c.opts.Now()); err != nil {
		return reply{fault: Unreached, err: err}
	}
	response, err := c.http.Do(r)
	if err != nil {
		return reply{sent: begun.Load(), fault: wayFault(err, connected.Load()), err: clean(err)}
	}
	defer func() { _ = response.Body.Close() }()
	got := reply{sent: true, status: response.StatusCode, retryAfter: retryAfter(response.Header.Get("Retry-After")),
		maxAge: maxAge(response.Header.Values("Cache-Control"))}
	got.body, err = io.ReadAll(io.LimitReader(response.Body, answerMax+1))
	switch {
	case err != nil:
		got.fault, got.err = wayFault(err, true), clean(err)
	case len(got.body) > answerMax:
		got.fault = TooLarge
	}
	return got
}

// wayFault classifies what went wrong between us and the facilitator.
func wayFault(err error, connected bool) Fault {
	timeout, isNet := errors.AsType[net.Error](err)
	switch {
	case !connected:
		return Unreached
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), isNet && timeout.Timeout():
		return TimedOut
	}
	return Broken
}

// retryAfter reads whole seconds; a date is not worth a clock that is not ours. Zero: none given.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.ParseUint(header, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second //nolint:gosec // below 2^31
}

// cacheControlMax is how much of Cache-Control is read: real ones have some fifty bytes.
const cacheControlMax = 1 << 10

// maxAge reads how long an answer may be used by its own word; zero: it gives no such time. One that may not be used at all is as good as one that says
// nothing: we look at it now. Of several the shortest counts.
func maxAge(header []string) time.Duration {
	var least time.Duration
	all := strings.Join(header, ",")
	for directive := range strings.SplitSeq(all[:min(len(all), cacheControlMax)], ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		seconds, err := strconv.ParseUint(value, 10, 31)
		if err != nil || seconds == 0 || !strings.EqualFold(name, "max-age") {
			continue
		}
		age := time.Duration(seconds) * time.Second //nolint:gosec // below 2^31
		if least == 0 || age < least {
			least = age
		}
	}
	return least
}

// A Verdict is the facilitator's word on whether an authorization would pay.
type Verdict struct {
	Valid bool
	Code  string // x402's, where it is not valid
	Payer common.Address
}

// Verify asks whether an authorization would pay. It moves nothing, and what it says proves nothing: the paid path verifies by itself and
// never asks. The error is a *Trouble, or a *source.LimitError where it was not asked.
func (c *Client) Verify(ctx context.Context, n chain.Network, s chain.Signed) (Verdict, error) {
	const call = "verify"
	body, err := c.prepare(call, n, s)
	if err != nil {
		return Verdict{}, err
	}
	turn, err := c.Reserve(ctx, source.Other, 1)
	if err != nil {
		return Verdict{}, err
	}
	defer turn.End(0)
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	got := c.do(ctx, http.MethodPost, call, body)
	if got.sent {
		turn.spend()
	}
	if got.fault != 0 {
		turn.report(ctx, source.Verdict{Kind: source.Troubled})
		return Verdict{}, c.trouble(call, got.fault, got.status, got.err)
	}
	verdict, fault := verifyAnswer(got.status, got.body, s.From)
	turn.report(ctx, c.verdict(got, fault == 0))
	if fault != 0 {
		return Verdict{}, c.trouble(call, fault, got.status, nil)
	}
	return verdict, nil
}
