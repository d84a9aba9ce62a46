package source

import "time"

// A Standing is how a source stands, for people. Times are market time; zero: never, or not now.
type Standing struct {
	Source Source

	Day        time.Time // today, at midnight UTC
	Used       int64     // units today
	Denied     int64     // units that were asked for today, and not let through or not asked of the source
	Cap        int64     // for today; 0: there is none
	Busiest    int64     // units of the busiest day that counts; 0: there is none
	BusiestDay time.Time

	Why           Why       // Exhausted or Denied where they stopped us; zero: they did not
	Said          string    // what their last refusal was known by
	ExhaustedAt   time.Time // when they refused last, or were tested last; zero: they do not stop us
	RetryAt       time.Time // when the next request may test them
	NextRequestAt time.Time // they asked us to wait until then; zero: they do not
	OutSince      time.Time // since when they are out or have not worked without refusing for a while; zero: they are not
	RefusedAt     time.Time
	LastSuccessAt time.Time
	GuardedAt     time.Time // when we stopped today; zero: we did not, or let through again

	At time.Time // when it was so
}
