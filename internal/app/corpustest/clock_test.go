package corpustest

import (
	"sync"
	"testing"
)

// A clock lets the rows of one market share its time. A row that waits for a time lets the others go on; when all of them wait, time moves on to
// the first that one of them waits for. So no row goes on before its time, and it goes on later only where the time that others take for what they
// do is longer than the one until its own; a row that bears no such delay plays at a time that no other row wants.
type clock struct {
	advance func(from, to int64)
	// passed is where the time stands that also passes by itself; nil: none does.
	passed func() int64

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
func newClock(rows int, advance func(from, to int64), passed func() int64) *clock {
	return &clock{running: rows, advance: advance, passed: passed}
}

// now is what the clock shows. Where time passes by itself, that is more than what was last waited for: who waits from now on waits the whole time.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reached()
}

func (c *clock) reached() int64 {
	if c.passed == nil {
		return c.at
	}
	return max(c.at, c.passed())
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
	if from := c.reached(); from < next {
		c.advance(from, next) // what has passed by itself is not let pass again
	}
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

// The time that rows take for what they do is part of what others wait, and not added to it; and nobody waits less than it wants.
func TestClock_WhatPassesByItselfIsNotLetPassAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ worked, wait, advanced, shows int64 }{
		"less than what is waited for": {worked: 7, wait: 25, advanced: 18, shows: 25},
		"more than what is waited for": {worked: 30, wait: 25, advanced: 0, shows: 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var market, advanced int64
			shared := newClock(2, func(from, to int64) { market, advanced = market+to-from, advanced+to-from }, func() int64 { return market })
			var wg sync.WaitGroup
			wg.Go(func() { shared.await(c.wait) })
			market += c.worked // the other row works before it leaves; the first is not due until then
			shared.leave()
			wg.Wait()
			if now := shared.now(); advanced != c.advanced || now != c.shows {
				t.Errorf("time was advanced by %d and shows %d, want %d and %d", advanced, now, c.advanced, c.shows)
			}
			wg.Go(func() { shared.await(shared.now() + 10) })
			wg.Wait()
			if now := shared.now(); now != c.shows+10 {
				t.Errorf("10 later the clock shows %d, want %d", now, c.shows+10)
			}
		})
	}
}
