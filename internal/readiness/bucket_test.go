package readiness

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// In any window of time t a bucket gives at most c + r·t, to the micro-dollar and the nanosecond, whoever asks for what and gives some of it back.
func TestBucket_GivesNoMoreThanItsBurstAndItsRate(t *testing.T) {
	t.Parallel()
	type given struct {
		at     time.Duration
		amount int64
	}
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
		rate := int64(1 + dice.Uint64N(1<<(1+dice.Uint64N(40))))
		burst := 1 + dice.Int64N(rate)
		start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		b, now := newBucket(rate, burst, start), time.Duration(0)
		var all []given
		for range 120 {
			now += time.Duration(dice.Int64N(1 << (1 + dice.Int64N(31))))
			amount := 1 + dice.Int64N(burst)
			wait, taken := b.take(start.Add(now), amount, time.Second)
			switch {
			case !taken:
			case dice.IntN(8) == 0:
				b.give(amount)
			default:
				all = append(all, given{now + wait, amount})
			}
		}
		for i := range all {
			sum := new(big.Int)
			for j := i; j < len(all); j++ {
				if all[j].at < all[i].at {
					continue
				}
				sum.Add(sum, big.NewInt(all[j].amount))
				// c + r·t, in billionths of a micro-dollar. A wait is rounded up to a nanosecond, so t is one more at most.
				most := new(big.Int).Mul(big.NewInt(rate), big.NewInt(int64(all[j].at-all[i].at)+1))
				most.Add(most, new(big.Int).Mul(big.NewInt(burst), big.NewInt(int64(time.Second))))
				if new(big.Int).Mul(sum, big.NewInt(int64(time.Second))).Cmp(most) > 0 {
					t.Fatalf("seed %d, r %d, c %d: %s within %s", seed, rate, burst, sum, all[j].at-all[i].at)
				}
			}
		}
	}
}

// What it gives it gives in time: nobody waits longer than the rate makes necessary.
func TestBucket_WaitsNoLongerThanItsRateMakesNecessary(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := newBucket(3, 3, now)
	want := func(what string, wait time.Duration, taken bool, amount int64) {
		t.Helper()
		if got, ok := b.take(now, amount, time.Second); got != wait || ok != taken {
			t.Errorf("%s: %s, %t; want %s, %t", what, got, ok, wait, taken)
		}
	}
	want("all at once", 0, true, 3)
	want("one more", 333_333_334, true, 1)
	want("and one more after that", 666_666_667, true, 1)
	want("more than a second gives", time.Second+333_333_334, false, 2)
	now = now.Add(333_333_334)
	want("a third of a second later", 666_666_666, true, 1)
	now = now.Add(time.Hour)
	want("it holds no more than its burst", 0, true, 3)
	want("for others later", 333_333_334, true, 1)
}
