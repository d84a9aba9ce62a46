package source

import (
	"context"
	"errors"
	"testing"
	"time"
)

func node(metered bool) Source {
	return Source{Name: "rpc/eip155:84532/node.example", Kind: KindRPC, Metered: metered, RunsOut: Daily, RetryWindow: time.Hour}
}

func (f *fleet) take(b *Block, n int64) *Grant {
	f.t.Helper()
	g, err := b.Take(f.t.Context(), Other, n)
	if err != nil {
		f.t.Fatalf("take %d: %v", n, err)
	}
	return g
}

func TestBlock_AMeteredSourceIsCountedInBlocks(t *testing.T) {
	t.Parallel()
	f := newFleet(t, node(true))
	f.noon()
	b := f.meter(0).Block(10)
	for range 10 {
		f.take(b, 1)
	}
	if s := f.standing(); s.Used != 10 {
		t.Errorf("%d units are counted after ten, want one block of ten", s.Used)
	}
	f.take(b, 4)
	f.take(b, 7) // the rest of the block is too small, and goes back
	f.replicas[0].Run(ended(t))
	if s := f.standing(); s.Used != 21 {
		t.Errorf("%d units are counted in the end, want the 21 that were taken", s.Used)
	}
}

// ended is the context of a process that is told to stop.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestBlock_TheLastUnitsOfADayAreLessThanABlock(t *testing.T) {
	t.Parallel()
	of := node(true)
	of.Guard = Guard{Floor: 12}
	f := newFleet(t, of)
	f.noon()
	b := f.meter(0).Block(10)
	for range 12 {
		f.take(b, 1)
	}
	f.wantTold("before anything was denied")
	if _, err := b.Take(t.Context(), Other, 1); !isLimit(err, Guarded) {
		t.Errorf("the thirteenth: %v", err)
	}
	f.wantTold("when it was", "out guarded")
	f.flush()
	if s := f.standing(); s.Used != 12 || s.Denied != 1 {
		t.Errorf("used %d, denied %d; want 12 and 1", s.Used, s.Denied)
	}
}

func TestBlock_OfYesterdayNothingIsUsedToday(t *testing.T) {
	t.Parallel()
	f := newFleet(t, node(true))
	f.noon()
	f.load()
	b := f.meter(0).Block(10)
	f.take(b, 1)
	f.shift(24 * time.Hour)
	f.load()
	f.take(b, 1)
	f.flush()
	if s := f.standing(); s.Used != 10 || s.Busiest != 1 {
		t.Errorf("%d today and %d yesterday, want a new block of 10 and the one unit", s.Used, s.Busiest)
	}
}

func TestBlock_ASourceThatIsNotMeteredIsAskedForOnlyWhileItIsOut(t *testing.T) {
	t.Parallel()
	f := newFleet(t, node(false))
	f.noon()
	f.load()
	first, second := f.meter(0).Block(10), f.meter(1).Block(10)
	f.take(first, 1)
	if s := f.standing(); s.Used != 0 {
		t.Errorf("%d units are counted, want none", s.Used)
	}
	f.take(first, 1).Report(t.Context(), noCredit)
	f.wantTold("when it refused", "out exhausted")
	if _, err := first.Take(t.Context(), Other, 1); !isLimit(err, Exhausted) {
		t.Errorf("the process that was refused asks again: %v", err)
	}
	f.load() // the other one is told
	if _, err := second.Take(t.Context(), Other, 1); !isLimit(err, Exhausted) {
		t.Errorf("the other process asks: %v", err)
	}
	f.shift(24 * time.Hour)
	f.load()
	blocks := [2]*Block{first, second}
	var test *Grant
	for i := range 8 {
		if g, err := blocks[i%2].Take(t.Context(), Other, 1); err == nil {
			if test != nil || !g.Tests() {
				t.Error("more than one request tests it")
			}
			test = g
		} else if !isLimit(err, Exhausted) {
			t.Error(err)
		}
	}
	if test == nil {
		t.Fatal("nobody tests it")
	}
	test.Report(t.Context(), worked)
	f.wantTold("when it works", "back exhausted", "resume")
	f.take(first, 1)
}

func TestBlock_TheOutageOfASourceThatIsNotMeteredEnds(t *testing.T) {
	t.Parallel()
	f := newFleet(t, node(false))
	f.noon()
	f.load()
	b := f.meter(0).Block(10)
	f.take(b, 1).Report(t.Context(), noCredit)
	f.tryNow()
	f.load()
	f.take(b, 1).Report(t.Context(), worked) // too soon to say that it is over
	f.wantTold("at first", "out exhausted", "resume", "resume")
	f.take(b, 1).Report(t.Context(), worked)
	f.shift(calm)
	f.load()
	f.take(b, 1).Report(t.Context(), worked)
	f.take(b, 1).Report(t.Context(), worked)
	f.wantTold("after a while", "back exhausted")
}

func isLimit(err error, why Why) bool {
	limit, ok := errors.AsType[*LimitError](err)
	return ok && limit.Why == why && limit.Wait > 0
}
