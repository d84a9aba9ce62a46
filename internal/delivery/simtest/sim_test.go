package simtest

import (
	"math/rand/v2"
	"testing"
	"time"
)

const (
	aMillion = 100_000
	seedOfCI = 6
)

func TestSimulation_AMillionCallsDelistWhomTheyHaveToAndNobodyElse(t *testing.T) {
	t.Parallel()
	for name, seed := range map[string]uint64{"the same each time": seedOfCI, "another each time": rand.Uint64()} { //nolint:gosec // it is printed
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			r := newRun(t, seed, usual)
			r.until(aMillion, nil)
			r.settle()
			t.Logf("SEED=%d took %s\n%s", seed, time.Since(started).Round(time.Millisecond), r.text())
		})
	}
}

const prefix = 20_000

func TestSimulation_TheDatabaseComesToTheSameVerdictsCallByCall(t *testing.T) {
	t.Parallel()
	started := time.Now()
	r := newRun(t, seedOfCI, usual)
	beside := newDatabase(t, r.sequence.services, usual)
	r.until(prefix, beside)
	r.compareAll(beside)
	r.settle()
	took := time.Since(started)
	t.Logf("SEED=%d took %s, %d calls a second\n%s", r.seed, took.Round(time.Millisecond), int(prefix/took.Seconds()), r.text())
}
