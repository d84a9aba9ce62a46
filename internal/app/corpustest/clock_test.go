package corpustest

import "sync"

// A clock lets the rows of one market share its time. A row that waits for a time lets the others go on; when all of them wait, time moves on to
// the first that one of them waits for. So nothing that a row does happens at another time because of what else is played.
type clock struct {
	advance func(from, to int64)

	mu      sync.Mutex
	at      int64
	running int
	waiting []waiter
}

type waiter struct {
	until int64
	due   chan struct{}
}

// newClock returns a clock at zero for so many rows, none of which has left. advance lets the time pass; its unit is the caller's.
func newClock(rows int, advance func(from, to int64)) *clock {
	return &clock{running: rows, advance: advance}
}

// now is what the clock shows.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// await returns when the clock shows a time.
func (c *clock) await(until int64) {
	due := make(chan struct{})
	c.mu.Lock()
	c.waiting = append(c.waiting, waiter{max(until, c.at), due})
	c.running--
	c.move()
	c.mu.Unlock()
	<-due
}

// leave says that a row has ended.
func (c *clock) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.move()
}

// move goes on to the first time that is waited for, where nobody does anything at this one.
func (c *clock) move() {
	if c.running > 0 || len(c.waiting) == 0 {
		return
	}
	next := c.waiting[0].until
	for _, w := range c.waiting {
		next = min(next, w.until)
	}
	c.advance(c.at, next)
	c.at = next
	var later []waiter
	for _, w := range c.waiting {
		if w.until > next {
			later = append(later, w)
			continue
		}
		c.running++
		close(w.due)
	}
	c.waiting = later
}
