package readiness

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// A bucket gives micro-dollars: so many a second, and so many at once, which are at most what a second gives. In any time t it gives at most burst + rate × t,
// to the micro-dollar and the nanosecond. What is taken beyond what is there has to be waited for, in the order of taking.
//
// What was taken and is not used after all comes back: the bucket then holds what it would hold if only the others had taken theirs, at the moments at which
// they used it. It is not simply added to what is there: meanwhile the bucket has filled up, and what then ran over would be given twice.
type bucket struct {
	rate, burst int64
	level       int64  // micro-dollars; below zero while somebody waits
	rest        uint64 // of a micro-dollar, in 1/1e9
	at          time.Time

	// log has what was taken lately, in the order of taking, which is that of its use; before it the bucket was as base says.
	log  []*taking
	base bucketLevel
	// sooner is closed when those who wait may go on sooner.
	sooner chan struct{}
}

// A bucketLevel is what a bucket holds at a time.
type bucketLevel struct {
	level int64
	rest  uint64
	at    time.Time
}

// A taking is an amount that somebody has taken, to be used at a time.
type taking struct {
	amount int64
	due    time.Time
}

const (
	// logFor is how long what was taken can come back, and logMax how much of it.
	logFor = 5 * time.Second
	logMax = 4096
)

func newBucket(rate, burst int64, now time.Time) *bucket {
	return &bucket{rate: rate, burst: burst, level: burst, at: now, base: bucketLevel{burst, 0, now}, sooner: make(chan struct{})}
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

// take takes an amount that does not have to be waited for longer than most; nil: it would have to. Whoever has taken may use it after the wait.
func (b *bucket) take(now time.Time, amount int64, most time.Duration) (*taking, time.Duration) {
	wait := b.wait(now, amount)
	if wait > most {
		return nil, wait
	}
	b.level -= amount
	t := &taking{amount, b.at.Add(wait)}
	b.log = append(b.log, t)
	b.forget()
	return t, wait
}

// forget takes what cannot come back any more out of the log. What is not used yet stays.
func (b *bucket) forget() {
	old := 0
	for old < len(b.log) && !b.log[old].due.After(b.at) && (b.at.Sub(b.log[old].due) > logFor || len(b.log)-old > logMax) {
		old++
	}
	if old == 0 {
		return
	}
	then := b.replay(b.log[:old])
	b.base = bucketLevel{then.level, then.rest, then.at}
	b.log = append(b.log[:0:0], b.log[old:]...)
}

// replay is the bucket after these from the log were used, each at its time.
func (b *bucket) replay(used []*taking) *bucket {
	then := &bucket{rate: b.rate, burst: b.burst, level: b.base.level, rest: b.base.rest, at: b.base.at}
	for _, t := range used {
		then.fill(t.due)
		then.level -= t.amount
	}
	return then
}

// give takes back what was taken and not used. Those who wait behind it wait less.
func (b *bucket) give(now time.Time, of *taking) {
	at := slices.Index(b.log, of)
	if at < 0 {
		return // too long ago
	}
	b.fill(now)
	b.log = slices.Delete(b.log, at, at+1)
	used := 0
	for used < len(b.log) && !b.log[used].due.After(b.at) {
		used++
	}
	then := b.replay(b.log[:used])
	then.fill(b.at)
	for _, t := range b.log[used:] {
		if due := then.at.Add(then.wait(then.at, t.amount)); due.Before(t.due) {
			t.due = due
		}
		then.level -= t.amount
	}
	b.level, b.rest = then.level, then.rest
	close(b.sooner)
	b.sooner = make(chan struct{})
}
