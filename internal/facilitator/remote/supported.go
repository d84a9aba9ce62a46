package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"market/internal/chain"
	"market/internal/pulse"
	"market/internal/source"
	"market/internal/wire"
)

const (
	// freshFor is how long an answer to /supported counts. askEvery asks several times in it.
	freshFor = 30 * time.Second
	askEvery = 10 * time.Second
	askAgain = 2 * time.Second // after an answer that was none

	kindsSaid = 8 // how many kinds a message repeats
)

// callSupported is the question what a facilitator supports.
const callSupported = "supported"

// A SupportedKind is what a facilitator says it settles, of the one scheme that we use.
type SupportedKind struct {
	Version int
	Network string // CAIP-2 for v2, a short name for v1
}

// state is what is known of the facilitator at a time.
type state struct {
	kinds      []SupportedKind
	answeredAt time.Time     // of the last good answer to /supported; zero: there was none
	validFor   time.Duration // by its own word; zero where it gave none
	failed     error         // why the last question got no answer; nil where it got one
}

// supportedAnswer reads /supported. A kind that we cannot read is none of ours.
func supportedAnswer(status int, body []byte) ([]SupportedKind, Fault) {
	if fault := statusFault(status); fault != 0 {
		return nil, fault
	}
	root, err := wire.ParseObject(body)
	if err != nil {
		return nil, faultOf(err)
	}
	list := root.Members["kinds"]
	if list.Kind != wire.Array {
		return nil, BadShape
	}
	var kinds []SupportedKind
	for _, item := range list.Items {
		version, network := item.Members["x402Version"], item.Members["network"]
		if item.Members["scheme"].Text != scheme || network.Kind != wire.String || !networkForm.MatchString(network.Text) || version.Kind != wire.Number {
			continue
		}
		switch version.Text {
		case "1":
			kinds = append(kinds, SupportedKind{v1, network.Text})
		case "2":
			kinds = append(kinds, SupportedKind{v2, network.Text})
		}
	}
	return kinds, 0
}

var networkForm = regexp.MustCompile(`^[-_a-zA-Z0-9:*]{1,64}$`)

// versionFor is the newest version in which kinds cover a network; 0 where none does.
func versionFor(kinds []SupportedKind, n chain.Network) int {
	best := 0
	for _, k := range kinds {
		switch {
		case k.Version == v2 && (k.Network == n.ID || k.Network == "eip155:*"):
			return v2
		case k.Version == v1 && n.V1Name != "" && k.Network == n.V1Name:
			best = v1
		}
	}
	return best
}

// Ask asks /supported once and keeps the answer, unless the facilitator is out: then it is asked for work alone, see rests. The error is a *Trouble,
// or a *source.LimitError.
func (c *Client) Ask(ctx context.Context) error {
	const call = callSupported
	if rests, limit := c.rests(); rests {
		return limit
	}
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	got := c.do(asking, http.MethodGet, call, nil)
	if got.fault != 0 && ctx.Err() != nil {
		return c.trouble(call, got.fault, got.status, got.err) // it is we who left
	}
	if got.fault != 0 {
		return c.keep(nil, 0, c.trouble(call, got.fault, got.status, got.err))
	}
	kinds, fault := supportedAnswer(got.status, got.body)
	if fault != 0 {
		c.noteRefusal(ctx, c.verdict(got, false))
		trouble := c.trouble(call, fault, got.status, nil)
		if fault != Unauthorized && c.turnedAway() { // a credential that is not taken stays a no
			return trouble
		}
		return c.keep(nil, 0, trouble)
	}
	return c.keep(kinds, got.maxAge, nil)
}

// Prove asks the facilitator now whether it settles on a network, whatever it said before, and returns for how long it lets its answer be used; zero where
// it says nothing of that. One that is out is not asked, see rests: what it said last stands, and Limited says that it takes no work. The error is a
// *Trouble; Definite tells a no from no answer.
func (c *Client) Prove(ctx context.Context, n chain.Network) (validFor time.Duration, err error) {
	err = c.Ask(ctx)
	if _, out := errors.AsType[*source.LimitError](err); err != nil && !out {
		return 0, err
	}
	if err := c.Settles(n); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.validFor, nil
}

// rests says that the facilitator is not asked what it supports: while it is out that would be one more request for somebody who has refused us, and a
// good answer would prove nothing, because it costs nothing. What it supports does not change because we owe it money, so what it said last is kept
// fresh. Once its window has ended the next payment or refund tests it; the question comes before that only where it was never answered, or where it
// could not be reached when it was asked last.
func (c *Client) rests() (bool, error) {
	limit := c.Limited()
	c.mu.Lock()
	defer c.mu.Unlock()
	known := !c.state.answeredAt.IsZero() && c.state.failed == nil
	if limit == nil && (c.opts.Meter == nil || !c.opts.Meter.Out() || !known) {
		return false, nil
	}
	if known {
		c.state.answeredAt = c.opts.Now()
	}
	return true, limit
}

// turnedAway says that the facilitator is out, now that it was asked, and that it is known what it supports. Its outage says what there is to say, and what it
// supports stands: were it taken for unknown, the end of its window would bring a question beside the one request that is to test it.
func (c *Client) turnedAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opts.Meter != nil && c.opts.Meter.Out() && !c.state.answeredAt.IsZero() && c.state.failed == nil
}

// keep writes down what a question brought, and tells when that changed.
func (c *Client) keep(kinds []SupportedKind, validFor time.Duration, failed *Trouble) error {
	c.mu.Lock()
	before := c.state.failed
	if failed == nil {
		c.state = state{kinds: kinds, answeredAt: c.opts.Now(), validFor: validFor}
	} else {
		c.state.failed = failed
	}
	c.mu.Unlock()
	switch {
	case failed == nil && before != nil:
		c.opts.Report(nil)
	case failed != nil && before == nil:
		select {
		case c.fails <- struct{}{}:
		default:
		}
		c.opts.Report(failed)
	}
	if failed == nil {
		return nil
	}
	return failed
}

// Watch asks again and again until the context ends, and soon after a payment could not be shown to it, because nobody is asked to pay before
// it answers again.
func (c *Client) Watch(ctx context.Context) {
	for {
		c.mu.Lock()
		pause := askEvery
		if c.state.failed != nil || c.state.answeredAt.IsZero() { // it was out when this process started
			pause = askAgain
		}
		c.mu.Unlock()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-c.fails:
			timer.Stop()
			continue
		case <-timer.C:
		}
		if c.answered() { // somebody who wanted to know has asked meanwhile
			pulse.Beat(ctx, askEvery)
			continue
		}
		if err := c.Ask(ctx); err != nil && ctx.Err() != nil {
			return
		}
		pulse.Beat(ctx, askEvery)
	}
}

// answered says whether it has answered since Watch asked last.
func (c *Client) answered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.failed == nil && !c.state.answeredAt.IsZero() && c.opts.Now().Sub(c.state.answeredAt) < askEvery
}

// Settles says why the facilitator is not to be relied on for a network, whether or not it takes work now: it has not said for a while that it settles
// there, or it cannot be reached. It asks nothing; Watch does. The error is a *Trouble; its fault is Unsupported only where it has answered.
func (c *Client) Settles(n chain.Network) error {
	const call = callSupported
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := c.state.failed
	trouble, _ := failed.(*Trouble) //nolint:errorlint // kept bare
	switch {
	case trouble != nil && (trouble.Fault == Unreached || trouble.Definite()):
		return failed
	case c.state.answeredAt.IsZero() || c.opts.Now().Sub(c.state.answeredAt) > freshFor:
		if failed != nil {
			return failed
		}
		return c.trouble(call, TimedOut, 0, nil)
	case versionFor(c.state.kinds, n) == 0:
		return c.trouble(call, Unsupported, 0, nil)
	}
	return nil
}

// Ready says why the facilitator can settle nothing on a network now: it is out, or Settles says why.
func (c *Client) Ready(n chain.Network) error {
	if err := c.Limited(); err != nil {
		return err
	}
	return c.Settles(n)
}

// version is the one to speak with the facilitator about a network; 0: it has not said that it settles there.
func (c *Client) version(n chain.Network) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return versionFor(c.state.kinds, n)
}

// Says tells an operator what the facilitator answered to /supported, or that it is out and was not asked.
func (c *Client) Says() string {
	limit := c.Limited()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case limit != nil:
		return fmt.Sprintf("facilitator %s: %s", c.opts.Name, limit)
	case c.state.failed != nil:
		return c.state.failed.Error()
	case len(c.state.kinds) == 0:
		return fmt.Sprintf("facilitator %s supports no network with the scheme %s", c.opts.Name, scheme)
	}
	var names []string
	for _, k := range c.state.kinds[:min(kindsSaid, len(c.state.kinds))] {
		names = append(names, fmt.Sprintf("%s (v%d)", k.Network, k.Version))
	}
	if more := len(c.state.kinds) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("facilitator %s supports %s", c.opts.Name, strings.Join(names, ", "))
}
