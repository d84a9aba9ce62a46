package readiness

import (
	"math"
	"math/bits"
	"time"
)

// A bucket gives micro-dollars: so many a second, and so many at once, which are at most what a second gives. In any time t it gives at most burst + rate × t,
// to the micro-dollar and the nanosecond. What is taken beyond what is there has to be waited for, in the order of taking.
type bucket struct {
	rate, burst int64
	level       int64  // micro-dollars; below zero while somebody waits
	rest        uint64 // of a micro-dollar, in 1/1e9
	at          time.Time
}

func newBucket(rate, burst int64, now time.Time) *bucket {
	return &bucket{rate: rate, burst: burst, level: burst, at: now}
}

// fill adds what has come since the last time. A second fills it from empty, and it is at most a few below.
func (b *bucket) fill(now time.Time) {
	since := now.Sub(b.at)
	if since <= 0 {
		return
	}
	b.at = now
	high, low := bits.Mul64(uint64(b.rate), uint64(since))
	low, carry := bits.Add64(low, b.rest, 0)
	high += carry
	if high >= uint64(time.Second) {
		b.level, b.rest = b.burst, 0
		return
	}
	more, rest := bits.Div64(high, low, uint64(time.Second))
	if more >= uint64(b.burst-b.level) {
		b.level, b.rest = b.burst, 0
		return
	}
	b.level, b.rest = b.level+int64(more), rest //nolint:gosec // less than burst − level
}

// wait is how long an amount would have to be waited for.
func (b *bucket) wait(now time.Time, amount int64) time.Duration {
	b.fill(now)
	missing := amount - b.level
	if missing <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(missing), uint64(time.Second))
	low, borrow := bits.Sub64(low, b.rest, 0)
	high -= borrow
	low, carry := bits.Add64(low, uint64(b.rate)-1, 0) // rounded up
	high += carry
	if high >= uint64(b.rate) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(b.rate))
	return time.Duration(min(quotient, math.MaxInt64)) //nolint:gosec // just bounded
}

// take takes an amount that does not have to be waited for longer than most. Whoever has taken may use it after the wait.
func (b *bucket) take(now time.Time, amount int64, most time.Duration) (wait time.Duration, taken bool) {
	if wait = b.wait(now, amount); wait > most {
		return wait, false
	}
	b.level -= amount
	return wait, true
}

// give gives back what was taken and not used.
func (b *bucket) give(amount int64) {
	b.level = min(b.burst, b.level+amount)
	if b.level == b.burst {
		b.rest = 0
	}
}
