package capacity

import "time"

// ahead is how much of its rate a replica may let in at once.
const ahead = time.Second

// A bucket is the rate of one service on one replica: the moment at which everything that was let in so far is paid off, at one call a pace
// (the generic cell rate algorithm). golang.org/x/time/rate does not serve here: it gives nothing back for a call that was let in a moment
// ago and then did not reach its service, and most refusals take that long.
type bucket struct{ due time.Time }

// wait is how long it takes until one more call may be let in; zero: it may now.
func (b bucket) wait(now time.Time, pace time.Duration) time.Duration {
	return max(0, b.due.Sub(now.Add(slack(pace))))
}

// take lets a call in.
func (b *bucket) take(now time.Time, pace time.Duration) {
	if b.due.Before(now) {
		b.due = now
	}
	b.due = b.due.Add(pace)
}

// giveBack is for a call that was let in at this pace and did not reach its service.
func (b *bucket) giveBack(pace time.Duration) { b.due = b.due.Add(-pace) }

// settle brings a bucket that was filled at a slower pace into the bounds of this one.
func (b *bucket) settle(now time.Time, pace time.Duration) {
	if latest := now.Add(slack(pace) + pace); b.due.After(latest) {
		b.due = latest
	}
}

// slack is how far the bucket may be ahead when one more call comes: as many calls as ahead has room for, or one, are let in at once.
func slack(pace time.Duration) time.Duration {
	return max(0, ahead/pace-1) * pace
}
