package simtest

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"market/internal/catalog"
)

const (
	// calls is how many there are of a run in memory, and fewCalls of a shorter one.
	calls    = 200_000
	fewCalls = 60_000
	// prefix is how many of them go through Postgres beside all other tests; MARKET_SIM_CALLS asks for another number.
	prefix = 6_000
	// waryPrefix is as many as it takes until callers who mean ill have done something.
	waryPrefix = 5_000
	// usualSeed is that of every run that asks for no other; MARKET_SIM_SEED does.
	usualSeed = 6
	// otherSeed is of other calls. No seed is drawn: a single failure of ours that nobody else meets looks like the service's own, and a rare run has one that
	// meets a service with two strikes of its own, which would stop a change that has nothing to do with it.
	otherSeed = 7
)

func TestSim_ServicesLeaveTheShelfForTheirOwnDoingAloneAndAtTheThirdIncident(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		seed  uint64
		calls int
	}{
		"many calls": {numberFrom(t, "MARKET_SIM_SEED", usualSeed), calls},
		"others":     {otherSeed, fewCalls},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, tt.seed, usual)
			r.until(tt.calls, nil)
			r.settle()
			t.Logf("MARKET_SIM_SEED=%d took %s\n%s", r.seed, time.Since(r.started).Round(time.Millisecond), r.text())
		})
	}
}

// B138: with evidence from two networks asked for, one caller who knows what a service cannot stand takes nobody off the shelf for good.
func TestSim_WithTwoSourcesAskedForOneCallerDelistsNobody(t *testing.T) {
	t.Parallel()
	wary := usual
	wary.Sources = 2
	r := newRun(t, usualSeed, wary)
	r.until(fewCalls/2, nil)
	r.settle()
	r.judgeWary()
}

// judgeWary looks at a market that asks for evidence from two networks.
func (r *run) judgeWary() {
	r.t.Helper()
	t, held := r.t, 0
	for i, rec := range r.memory.records {
		for _, d := range rec.left {
			if n := sourcesOf(d.strikes); d.to == catalog.Delisted && n < 2 {
				t.Errorf("%s is delisted by call %d, with evidence of %d networks", slug(i), d.n, n)
			}
			if d.to == catalog.Held {
				held++
			}
		}
	}
	if held == 0 {
		t.Error("nobody is held, so the callers who mean ill did nothing")
	}
}

func TestSim_WithTwoSourcesTheDatabaseComesToTheSameVerdicts(t *testing.T) {
	t.Parallel()
	wary := usual
	wary.Sources = 2
	r := newRun(t, usualSeed, wary)
	beside := newDatabase(t, r.sequence.services, wary)
	r.until(waryPrefix, beside)
	r.compareAll(beside)
	r.settle()
	r.judgeWary()
}

// MARKET_SIM_CALLS and MARKET_SIM_SEED ask for another run, of which MARKET_SIM_RESULT keeps the result.
func TestSim_TheDatabaseComesToTheSameVerdictsCallByCall(t *testing.T) {
	t.Parallel()
	r := newRun(t, numberFrom(t, "MARKET_SIM_SEED", usualSeed), usual)
	n := int(numberFrom(t, "MARKET_SIM_CALLS", prefix)) //nolint:gosec // nobody waits for so many
	beside := newDatabase(t, r.sequence.services, usual)
	defer func() { // a run that ends early says so, too
		took := time.Since(r.started)
		t.Logf("MARKET_SIM_SEED=%d took %s, %d calls a second", r.seed, took.Round(time.Millisecond), int(float64(r.sequence.recorded)/took.Seconds()))
		if file := os.Getenv("MARKET_SIM_RESULT"); file != "" {
			fmt.Printf("%s\n%s", r.text(), r.line())
			if err := os.WriteFile(file, []byte(r.file(os.Getenv("MARKET_SIM_COMMIT"), took)), 0o644); err != nil { //nolint:gosec // everybody may read it
				t.Error(err)
			}
		}
	}()
	r.until(n, beside)
	r.compareAll(beside)
	r.settle()
}

func numberFrom(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
