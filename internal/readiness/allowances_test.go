package readiness

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A proof may be used for the smallest allowance that has held since it began, one that is gone again included.
func TestAllowances_AProofIsUsedForTheSmallestSinceItBegan(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for seed := range uint64(100) {
		dice := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // no secret
		var (
			a    allowances
			held []time.Duration // by second
		)
		for second := range 40 {
			d := time.Duration(1 + dice.IntN(9))
			a.now(start.Add(time.Duration(second)*time.Second), d)
			held = append(held, d)
			for began := range held {
				least := held[began]
				for _, d := range held[began:] {
					least = min(least, d)
				}
				if got := a.since(start.Add(time.Duration(began)*time.Second + 1)); got != least {
					t.Fatalf("seed %d: a proof of second %d is used for %d in second %d, want %d of %v", seed, began, got, second, least, held)
				}
			}
			if a.last() != d {
				t.Fatalf("seed %d: what holds now is %d, want %d", seed, a.last(), d)
			}
		}
		if got := a.since(start.Add(-1)); got != 0 {
			t.Fatalf("seed %d: a proof from before anything is known is used for %d", seed, got)
		}
	}
}

func TestAllowances_ForgetsOnTheSafeSide(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var a allowances
	for i := range 10 * allowancesMax {
		a.now(start.Add(time.Duration(i)*time.Second), time.Duration(i+1))
	}
	for i := range 10 * allowancesMax {
		if got := a.since(start.Add(time.Duration(i) * time.Second)); got > time.Duration(i+1) || got < 1 {
			t.Fatalf("a proof of second %d is used for %d, want at most %d", i, got, i+1)
		}
	}
	if len(a.steps) > allowancesMax || a.last() != 10*allowancesMax {
		t.Errorf("%d steps, the last %d", len(a.steps), a.last())
	}
}
