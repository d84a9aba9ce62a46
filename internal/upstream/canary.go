package upstream

import (
	"context"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	canaryTimeout = time.Second
	canaryLife    = 5 * time.Second // how long a sounding counts
)

// A Sounding is what one round over all canaries found. Without a canary it is zero and says nothing.
type Sounding struct {
	At     time.Time // when the round ended, in this process's time
	Asked  int
	Failed int // that did not take a connection in time
}

// Fails says whether a canary failed, which is reason enough not to blame a service for a connection that timed out.
func (s Sounding) Fails() bool { return s.Failed > 0 }

// AllFail says that no canary took a connection.
func (s Sounding) AllFail() bool { return s.Asked > 0 && s.Failed == s.Asked }

// Canaries are hosts of others that are always up. When one of them cannot be connected to, the way out of here is suspect. They are asked
// when a service could not be connected to in time, again and again while none of them answers (Again), and no more than once at a time.
type Canaries struct {
	addresses []string
	connect   connectFunc
	now       func() time.Time
	changed   func(Sounding)
	flights   singleflight.Group

	mu     sync.Mutex
	last   Sounding
	before Sounding // the one before the last
}

// NewCanaries takes addresses as host:port. With none, nothing is ever asked and nothing ever said. changed hears of a sounding that fails after one
// that did not, and the other way round.
func NewCanaries(addresses []string, now func() time.Time, changed func(Sounding)) *Canaries {
	return &Canaries{addresses: addresses, connect: (&net.Dialer{}).DialContext, now: now, changed: changed}
}

// State returns the newest sounding, if it still counts. It never waits.
func (c *Canaries) State(now time.Time) (Sounding, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.last.Asked > 0 && now.Sub(c.last.At) < canaryLife
}

// Ask returns a sounding that counts for something that began at since, and takes one if there is none: a good one from before says nothing
// about a way out that broke later. It waits about a second at most; where ctx ends before, it says nothing.
func (c *Canaries) Ask(ctx context.Context, since time.Time) Sounding {
	if c == nil || len(c.addresses) == 0 {
		return Sounding{}
	}
	if s, counts := c.State(c.now()); counts && (s.Fails() || !s.At.Before(since)) {
		return s
	}
	select {
	case r := <-c.flights.DoChan("", func() (any, error) { return c.sound(), nil }):
		s, _ := r.Val.(Sounding)
		return s
	case <-ctx.Done():
		return Sounding{}
	}
}

// Last returns the two newest soundings, however old; zero where there were none.
func (c *Canaries) Last() (last, before Sounding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.before
}

// Again takes another sounding as soon as the newest does not count any more, if no canary took a connection in that or if wanted.
// It waits about a second at most.
func (c *Canaries) Again(ctx context.Context, wanted bool) {
	if last, _ := c.Last(); last.AllFail() || wanted {
		c.Ask(ctx, last.At)
	}
}

// sound connects to all at once, on a deadline of its own: others wait for it, too.
func (c *Canaries) sound() Sounding {
	ctx, cancel := context.WithTimeout(context.Background(), canaryTimeout)
	defer cancel()
	failed := make(chan bool, len(c.addresses))
	for _, address := range c.addresses {
		go func() {
			conn, err := c.connect(ctx, "tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			failed <- err != nil
		}()
	}
	s := Sounding{Asked: len(c.addresses)}
	for range c.addresses {
		if <-failed {
			s.Failed++
		}
	}
	s.At = c.now()
	c.mu.Lock()
	before := c.last
	c.last, c.before = s, before
	c.mu.Unlock()
	if s.Fails() != before.Fails() {
		c.changed(s)
	}
	return s
}
