package source

import (
	"context"
	"math"
	"time"

	"market/internal/postgres"
)

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

// Standings returns how every source stands, in order.
func (r *Registry) Standings(ctx context.Context, db postgres.DB) ([]Standing, error) {
	all, err := read(ctx, db, r.names())
	if err != nil {
		return nil, err
	}
	out := make([]Standing, 0, len(all))
	for i, m := range r.order {
		out = append(out, m.of.standing(all[i]))
	}
	return out, nil
}

func (s Source) standing(g reading) Standing {
	limit := Cap(s.Guard, g.busiest)
	out := Standing{
		Source: s, Day: g.day, Used: g.used, Denied: g.denied, Cap: limit, Busiest: g.busiest, BusiestDay: g.busiestDay,
		Said: g.said, ExhaustedAt: g.exhaustedAt, RetryAt: g.retryAt, OutSince: g.outSince, RefusedAt: g.refusedAt, LastSuccessAt: g.lastSuccessAt, At: g.at,
	}
	if limit == math.MaxInt64 {
		out.Cap = 0
	}
	if g.stops() {
		out.Why = g.why
	}
	if g.at.Before(g.nextRequestAt) {
		out.NextRequestAt = g.nextRequestAt
	}
	if g.guards(g.day, limit) {
		out.GuardedAt = g.guardReachedAt
	}
	return out
}
