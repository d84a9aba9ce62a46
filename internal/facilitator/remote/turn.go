package remote

import (
	"context"
	"net/http"
	"time"

	"market/internal/source"
)

// A Meter counts what the facilitator is asked that may cost money, and knows while it takes no work: a *source.Meter.
type Meter interface {
	Ready() error
	ReadyToRefund(n int64) error
	Out() bool
	ReadyFor(rank int) error
	Reserve(ctx context.Context, class source.Class, n int64) (*source.Grant, error)
	ReserveCall(ctx context.Context, rank int, n int64) (*source.Grant, error)
}

// A Turn is leave to show the facilitator something, counted before anything is shown. Only one settlement at a time may use it.
type Turn struct {
	grant *source.Grant // nil where nothing is counted
	left  int64         // units that are set aside and not spent
	shown bool
	ended bool
}

// Reserve sets n units aside. The error is a *source.LimitError where the facilitator takes no work now; any other one is the database's.
func (c *Client) Reserve(ctx context.Context, class source.Class, n int64) (*Turn, error) {
	return c.reserve(n, func(m Meter) (*source.Grant, error) { return m.Reserve(ctx, class, n) })
}

// ReserveCall is Reserve for a new call, which gives way to those of a higher rank when little is left.
func (c *Client) ReserveCall(ctx context.Context, rank int, n int64) (*Turn, error) {
	return c.reserve(n, func(m Meter) (*source.Grant, error) { return m.ReserveCall(ctx, rank, n) })
}

func (c *Client) reserve(n int64, of func(Meter) (*source.Grant, error)) (*Turn, error) {
	if c.opts.Meter == nil {
		return &Turn{left: n}, nil
	}
	grant, err := of(c.opts.Meter)
	if err != nil {
		return nil, err
	}
	return &Turn{grant: grant, left: n}, nil
}

// Limited says from memory why Reserve would refuse now: a *source.LimitError, or nil.
func (c *Client) Limited() error {
	if c.opts.Meter == nil {
		return nil
	}
	return c.opts.Meter.Ready()
}

// LimitedFor is Limited for new calls of one rank.
func (c *Client) LimitedFor(rank int) error {
	if c.opts.Meter == nil {
		return nil
	}
	return c.opts.Meter.ReadyFor(rank)
}

// LimitedToRefund is Limited for a refund that wants n units, 0 where its unit is set aside with the facilitator.
func (c *Client) LimitedToRefund(n int64) error {
	if c.opts.Meter == nil {
		return nil
	}
	return c.opts.Meter.ReadyToRefund(n)
}

// Source is the name under which the facilitator is counted.
func (c *Client) Source() string { return c.opts.Source.Name }

// spend is that a request has left us, or may have.
func (t *Turn) spend() { t.shown, t.left = true, max(0, t.left-1) }

// Shown says whether something has left us in this turn.
func (t *Turn) Shown() bool { return t.shown }

// Left is how many units are not spent.
func (t *Turn) Left() int64 { return t.left }

// End gives back what is not spent, but for what is kept for later. It may be called again.
func (t *Turn) End(keep int64) {
	if t.grant != nil && !t.shown && !t.ended {
		t.grant.Unasked(context.Background()) // whoever asked may be gone
	}
	t.ended = true
	if back := t.left - keep; back > 0 {
		t.left = keep
		if t.grant != nil {
			t.grant.GiveBack(back)
		}
	}
}

// reportTime bounds the writing down of what came of a request.
const reportTime = 5 * time.Second

// report tells the guard what came of a request, on a deadline of its own: whoever asked may be gone, and the next one is to know.
func (t *Turn) report(ctx context.Context, v source.Verdict) {
	if t.grant == nil {
		return
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTime)
	defer cancel()
	t.grant.Report(own, v)
}

// verdict is what an answer says of the facilitator itself. decided is that it is a word on one payment in the protocol's own form: its status then is as
// much about the payment as the word is (some say every no with a 402), and must not close a network, which a caller could provoke. Such a word says that
// the facilitator is out only where it is no code of x402's, and the operator has said so, or it is the name of a limit.
func (c *Client) verdict(got reply, decided bool) source.Verdict {
	of := c.opts.Source
	a := source.Answer{Status: got.status, RetryAfter: got.retryAfter, Text: textOf(got.body)}
	if !decided {
		return source.Classify(source.KindFacilitator, of.RunsOut, of.Shapes, a)
	}
	worked := source.Verdict{Kind: source.Worked}
	b, _ := readSettleBody(got.body)
	if codes[b.reason] != 0 || b.reason == codePending || b.success {
		return worked
	}
	if !source.Look(of.Shapes, a) {
		a.Status, a.Text = http.StatusBadRequest, b.reason
	}
	if v := source.Classify(source.KindFacilitator, of.RunsOut, of.Shapes, a); refuses(v) {
		return v
	}
	return worked
}

// textBytesMax is how much of an answer is looked through for the words of a limit.
const textBytesMax = 1 << 10

func textOf(body []byte) string { return string(body[:min(len(body), textBytesMax)]) }

// refuses says whether a verdict is that the facilitator takes no work.
func refuses(v source.Verdict) bool {
	return v.Kind == source.Refused || v.Kind == source.Rejected || v.Kind == source.Slowed
}

// refusalFault is the fault of a facilitator that refuses us in words about a payment.
func refusalFault(v source.Verdict) Fault {
	switch v.Kind {
	case source.Slowed:
		return Throttled
	case source.Rejected:
		return Unauthorized
	case source.Refused, source.Worked, source.Troubled:
	}
	return Unpaid
}

// noteRefusal writes down that a request which is not counted was turned away: it is an outage like any other. Where it is known already, nothing is to be written.
func (c *Client) noteRefusal(ctx context.Context, v source.Verdict) {
	if c.opts.Meter == nil || !refuses(v) {
		return
	}
	turn, err := c.Reserve(ctx, source.Other, 0)
	if err != nil {
		return // it is out already, or the database is: then the next request finds it out
	}
	turn.report(ctx, v)
}
