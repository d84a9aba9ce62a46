package caller

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/shopspring/decimal"

	"market/internal/chain"
	"market/internal/payment"
)

const (
	// BodyBytesMax is how much of an answer is kept.
	BodyBytesMax = 16 << 20

	headerBytesMax = 64 << 10
	timeoutDefault = 3 * time.Minute // a slow service and its settlement
)

// DefaultMaxUSD is what one call may cost when nobody said otherwise and nobody is asked; the limit of stock clients.
var DefaultMaxUSD = decimal.NewFromInt(1)

// Reasons why a Client did not pay. None of them has cost anything.
var (
	ErrDeclined     = errors.New("the price was declined")
	ErrTooExpensive = errors.New("the price is above the limit")
)

// An UnclearError is a payment that was sent and not answered. The money may have moved or may still move; sending the same payment again
// is safe and tells.
type UnclearError struct {
	PaymentHeader string
	Err           error
}

func (e *UnclearError) Error() string {
	return "the payment was sent and not answered: " + e.Err.Error()
}

// Unwrap returns what went wrong on the way.
func (e *UnclearError) Unwrap() error { return e.Err }

// A Client pays for calls with one key. Its fields are set before its first use; it is safe for concurrent use then.
type Client struct {
	Key     chain.Key
	MaxUSD  decimal.Decimal           // the most that a call may cost; zero: DefaultMaxUSD, or no limit where Confirm asks
	Confirm func(Quote) (bool, error) // asked before each payment; nil pays what the limit allows
	Assets  []Asset                   // tokens to pay in, beside the well-known ones
	Now     func() time.Time          // nil: the wall clock
	Timeout time.Duration             // of each request, and of a pause in a stream; zero: three minutes
	Stream  io.Writer                 // takes a streamed answer as it comes; nil: it is kept like any other
	HTTP    *http.Client              // nil: one with limits; its redirect policy is not used
}

// A Request is what to ask. The body is kept, because it may be sent twice.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

// Do asks, pays if the answer is a challenge, and asks again with the payment. It signs one authorization at most: a second challenge is the result. An answer
// to the first request that is no challenge is the result too. The error is one of the above where the caller can do something about it.
func (c *Client) Do(ctx context.Context, r Request) (*Result, error) {
	if r.Header.Get(payment.HeaderSignature) != "" || r.Header.Get(payment.HeaderV1Payment) != "" {
		return nil, errors.New("the request carries a payment already")
	}
	first, err := c.send(ctx, r, "")
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", r.URL, err)
	}
	if first.Status != http.StatusPaymentRequired {
		return first, nil
	}
	required, err := payment.DecodeChallenge(first.Header.Get(payment.HeaderRequired))
	if err != nil {
		return first, fmt.Errorf("the 402 of %s: %w", r.URL, err)
	}
	chosen, err := c.choose(required)
	if err != nil {
		return first, err
	}
	first.Quote = &chosen.quote
	if err := c.approve(chosen.quote); err != nil {
		return first, err
	}
	header, err := c.sign(chosen, required)
	if err != nil {
		return first, err
	}
	result, err := c.DoWith(ctx, r, header)
	if err != nil {
		return nil, err
	}
	result.Quote = &chosen.quote
	return result, nil
}

// DoWith sends a request with a payment that exists already: that of Result.PaymentHeader or of an UnclearError. A failure on the
// way is an UnclearError. The transport may send a GET once more on a connection that broke, which repeats the same payment too.
func (c *Client) DoWith(ctx context.Context, r Request, paymentHeader string) (*Result, error) {
	result, err := c.send(ctx, r, paymentHeader)
	if err != nil {
		return nil, &UnclearError{PaymentHeader: paymentHeader, Err: err}
	}
	return result, nil
}

func (c *Client) approve(q Quote) error {
	limit := c.MaxUSD
	if limit.IsZero() && c.Confirm == nil {
		limit = DefaultMaxUSD
	}
	if !limit.IsZero() && q.USD.GreaterThan(limit) {
		return fmt.Errorf("%w: %s, limit %s USD", ErrTooExpensive, q, limit)
	}
	if c.Confirm == nil {
		return nil
	}
	yes, err := c.Confirm(q)
	if err != nil {
		return err
	}
	if !yes {
		return ErrDeclined
	}
	return nil
}

func (c *Client) sign(o offer, required payment.Required) (string, error) {
	var nonce common.Hash
	if _, err := rand.Read(nonce[:]); err != nil {
		return "", fmt.Errorf("draw a nonce: %w", err)
	}
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	a := chain.Authorization{
		From: c.Key.Address(), To: o.quote.PayTo, Value: o.quote.Amount, Nonce: nonce,
		ValidBefore: uint64(now().Unix() + o.quote.MaxTimeoutSeconds), //nolint:gosec // a clock before 1970 signs what no chain takes
	}
	signature, err := c.Key.SignAuthorization(o.domain, a)
	if err != nil {
		return "", fmt.Errorf("sign the payment: %w", err)
	}
	signed := chain.Signed{Asset: o.accepted.Asset, Authorization: a, Signature: signature}
	if required.TakesIdentifier() {
		// The name goes where the payment goes and is on no chain, so sending the payment again from another network still shows that it
		// is ours, and the answer is given out again.
		return payment.EncodeIdentified(required, o.accepted, signed, payment.NewIdentifier())
	}
	return payment.EncodePayload(o.accepted, required.Resource, signed)
}

func (c *Client) send(ctx context.Context, r Request, paymentHeader string) (*Result, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = timeoutDefault
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	if paymentHeader != "" {
		req.Header.Set(payment.HeaderSignature, paymentHeader)
	}
	resp, err := c.http().Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	result := &Result{Status: resp.StatusCode, Header: resp.Header, PaymentHeader: paymentHeader}
	if _, streamed := resp.Trailer[HeaderOutcome]; streamed && c.Stream != nil {
		result.Broken = passOn(c.Stream, resp.Body, func() { timer.Reset(timeout) })
		result.read(resp.Trailer)
		return result, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, BodyBytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	result.Body = body
	if len(body) > BodyBytesMax {
		result.Body, result.Truncated = body[:BodyBytesMax], true
	}
	result.read(resp.Trailer)
	return result, nil
}

// passOn writes a stream piece by piece and calls each after every one. The error is why it did not come to its end.
func passOn(to io.Writer, from io.Reader, each func()) error {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		each()
		if _, failed := to.Write(piece[:n]); failed != nil {
			return fmt.Errorf("pass the stream on: %w", failed)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the stream: %w", err)
		}
	}
}

// transport is shared by all clients that bring none, so that connections are used again.
var transport = newTransport()

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = headerBytesMax
	t.ResponseHeaderTimeout = timeoutDefault
	return t
}

// http never follows a redirect: it could carry the payment to somebody else, or turn a POST into a GET.
func (c *Client) http() *http.Client {
	client := http.Client{Transport: transport}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}
