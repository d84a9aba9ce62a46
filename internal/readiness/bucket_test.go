package readiness

import (
	"cmp"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// In any window of time t a bucket gives at most c + r·t, to the micro-dollar and the nanosecond, whoever asks for what and gives some of it back, before it was
// used up or long after that.
func TestBucket_GivesNoMoreThanItsBurstAndItsRate(t *testing.T) {
	t.Parallel()
	type holding struct {
		*taking
		back time.Duration // when it is given back; zero: never
	}
	for seed := range uint64(300) {
		dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
		rate := int64(1 + dice.Uint64N(1<<(1+dice.Uint64N(40))))
		burst := 1 + dice.Int64N(rate)
		start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		b, now := newBucket(rate, burst, start), time.Duration(0)
		var kept []*taking
		var out []holding
		for range 120 {
			now += time.Duration(dice.Int64N(1 << (1 + dice.Int64N(31))))
			out = slices.DeleteFunc(out, func(h holding) bool {
				if h.back > now {
					return false
				}
				b.give(start.Add(h.back), h.taking)
				return true
			})
			taken, _ := b.take(start.Add(now), 1+dice.Int64N(burst), time.Second)
			switch {
			case taken == nil:
			case dice.IntN(3) == 0:
				out = append(out, holding{taken, now + time.Duration(dice.Int64N(int64(2*time.Second)))})
				slices.SortFunc(out, func(a, b holding) int { return cmp.Compare(a.back, b.back) })
			default:
				kept = append(kept, taken)
			}
		}
		for _, h := range out {
			kept = append(kept, h.taking) // never given back after all
		}
		slices.SortStableFunc(kept, func(a, b *taking) int { return a.due.Compare(b.due) })
		for i, first := range kept {
			sum := new(big.Int)
			for _, last := range kept[i:] {
				sum.Add(sum, big.NewInt(last.amount))
				span := last.due.Sub(first.due)
				// c + r·t, in billionths of a micro-dollar. A wait is rounded up to a nanosecond, so t is one more at most.
				most := new(big.Int).Mul(big.NewInt(rate), big.NewInt(int64(span)+1))
				most.Add(most, new(big.Int).Mul(big.NewInt(burst), big.NewInt(int64(time.Second))))
				if new(big.Int).Mul(sum, big.NewInt(int64(time.Second))).Cmp(most) > 0 {
					t.Fatalf("seed %d, r %d, c %d: %s within %s", seed, rate, burst, sum, span)
				}
			}
		}
	}
}

// What comes back is what would be there without it: what ran over meanwhile is not given twice.
func TestBucket_Give_HoldsWhatItWouldHoldHadItNeverBeenTaken(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := newBucket(10, 10, start)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	unused, _ := b.take(start, 10, 0)
	b.take(at(0.5), 5, 0) // from a full bucket, had it not been for the other
	b.give(at(0.5), unused)
	if b.level != 5 {
		t.Errorf("it holds %d, want 5", b.level)
	}
	b.give(at(0.5), unused)
	if b.level != 5 {
		t.Errorf("given back twice: it holds %d, want 5", b.level)
	}
	late, _ := b.take(at(1), 10, 0)
	b.take(at(7), 1, 0)
	b.give(at(7), late)
	if b.level != 9 || len(b.log) != 1 {
		t.Errorf("after it was forgotten: it holds %d and remembers %d, want 9 and 1", b.level, len(b.log))
	}
}

// What it gives it gives in time: nobody waits longer than the rate makes necessary.
func TestBucket_WaitsNoLongerThanItsRateMakesNecessary(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := newBucket(3, 3, now)
	want := func(what string, wait time.Duration, taken bool, amount int64) {
		t.Helper()
		if got, waits := b.take(now, amount, time.Second); waits != wait || (got != nil) != taken {
			t.Errorf("%s: %s, %t; want %s, %t", what, waits, got != nil, wait, taken)
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
