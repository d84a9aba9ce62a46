// Package readiness answers whether we may take money on a network: can we settle there, and can we give it back. One direct check a
// network, kept for a few seconds; a check that fails, or that does not come back, is a no.
package readiness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// ErrUnknown is that nobody checks a network.
var ErrUnknown = errors.New("network is not checked")

// A Check tells why a network is not ready; nil when it is.
type Check func(ctx context.Context) error

// Options say how a Checker judges.
type Options struct {
	Age   time.Duration // how long a verdict is good for
	Limit time.Duration // a check that takes longer has failed
	// Limited tells from memory why nobody takes work on a network now; nil where somebody does. It is asked each time, because it ends to the second, and
	// is no news for Changed: whoever keeps it tells of it. Nil: no network is ever limited.
	Limited func(network string) error
	Now     func() time.Time
	// Changed hears when a network is no longer ready, with the reason, and when it is again, with nil. One that is ready at first is no
	// news.
	Changed func(network string, err error)
}

// Checker keeps the verdict of one check a network.
type Checker struct {
	checks map[string]Check
	opts   Options

	flight singleflight.Group
	mu     sync.Mutex
	last   map[string]verdict
}

type verdict struct {
	at  time.Time
	err error
}

// New returns a checker of these networks. It checks nothing before it is asked.
func New(checks map[string]Check, opts Options) *Checker {
	return &Checker{checks: checks, opts: opts, last: map[string]verdict{}}
}

// Ready returns why a network is not ready, from a verdict that is at most age old. Callers share one check; one that leaves does not
// end it.
func (c *Checker) Ready(ctx context.Context, network string) error {
	check, known := c.checks[network]
	if !known {
		return fmt.Errorf("%w: %s", ErrUnknown, network)
	}
	if c.opts.Limited != nil {
		if err := c.opts.Limited(network); err != nil {
			return err
		}
	}
	if v, fresh := c.verdict(network); fresh {
		return v.err
	}
	done := c.flight.DoChan(network, func() (any, error) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opts.Limit)
		defer cancel()
		err := check(limited)
		if c.keep(network, err) {
			c.opts.Changed(network, err)
		}
		return nil, err
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// keep stores a verdict, and says whether it is another one than before.
func (c *Checker) keep(network string, err error) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.last[network]
	c.last[network] = verdict{at: c.opts.Now(), err: err}
	return (before.err == nil) != (err == nil)
}

func (c *Checker) verdict(network string) (verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, seen := c.last[network]
	return v, seen && c.opts.Now().Sub(v.at) < c.opts.Age
}

// All returns every network's reason for not being ready; nil for those that are. They are asked at once, so it takes no longer than one check may.
func (c *Checker) All(ctx context.Context) map[string]error {
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		all = make(map[string]error, len(c.checks))
	)
	for network := range c.checks {
		wg.Go(func() {
			why := c.Ready(ctx, network)
			mu.Lock()
			defer mu.Unlock()
			all[network] = why
		})
	}
	wg.Wait()
	return all
}
