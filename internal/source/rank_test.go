package source

import (
	"math"
	"testing"
	"time"
)

func TestCeilingOf_OfTheLastTenthTheHigherRanksKeepEqualSteps(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rank, ranks int
		limit       int64
		waiting     Waiting
		want        int64
	}{
		"one rank may use all":                       {0, 1, 1000, Waiting{}, 1000},
		"no rank is like one":                        {0, 0, 1000, Waiting{}, 1000},
		"the lowest of two leaves half of the tenth": {0, 2, 1000, Waiting{}, 950},
		"the highest of two":                         {1, 2, 1000, Waiting{}, 1000},
		"the lowest of three":                        {0, 3, 1000, Waiting{}, 934},
		"the middle one of three":                    {1, 3, 1000, Waiting{}, 967},
		"the highest of three":                       {2, 3, 1000, Waiting{}, 1000},
		"refunds and payouts come before all":        {2, 3, 1000, Waiting{Refunds: 30, Payouts: 10}, 960},
		"the steps are of what they leave":           {0, 3, 1000, Waiting{Refunds: 30, Payouts: 10}, 920},
		"and there are none where they want all":     {0, 3, 1000, Waiting{Refunds: 100}, 900},
		"a rank above all is the highest":            {9, 3, 1000, Waiting{}, 1000},
		"a rank below all is the lowest":             {-1, 3, 1000, Waiting{}, 934},
		"a tenth of nothing has no steps":            {0, 3, 9, Waiting{}, 9},
		"no cap":                                     {0, 2, math.MaxInt64, Waiting{}, math.MaxInt64 - math.MaxInt64/20},
	} {
		if got := CeilingOf(tt.rank, tt.ranks, tt.limit, tt.waiting); got != tt.want {
			t.Errorf("%s: CeilingOf(%d, %d, %d, %v) = %d, want %d", name, tt.rank, tt.ranks, tt.limit, tt.waiting, got, tt.want)
		}
	}
}

// Whatever waits and however many ranks there are: a higher rank may use no less than a lower one, nobody takes what refunds and payouts want, and nobody is
// kept from the first nine tenths.
func TestCeilingOf_NeverFallsWithTheRank(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 1, 9, 10, 11, 20, 99, 100, 101, 5000, math.MaxInt64} {
		for ranks := 1; ranks <= 16; ranks++ {
			for _, w := range []Waiting{{}, {Refunds: 1}, {Payouts: 3}, {5, 5}, {Refunds: math.MaxInt64}} {
				last := limit - tenth(limit)
				for rank := range ranks {
					got := CeilingOf(rank, ranks, limit, w)
					if got < last || got > Ceiling(Settlement, limit, w) {
						t.Fatalf("rank %d of %d under a cap of %d with %v waiting may use %d: the rank below may use %d", rank, ranks, limit, w, got, last)
					}
					last = got
				}
				if last != Ceiling(Settlement, limit, w) {
					t.Fatalf("the highest of %d ranks under a cap of %d with %v waiting may use %d, want all that is left", ranks, limit, w, last)
				}
			}
		}
	}
}

// Both replicas go for the last tenth at once, and the row of the day arbitrates: the lowest rank ends at its step and the highest at the cap, to the unit.
func TestMeter_ReserveCall_WhenLittleIsLeftTheHigherRankComesFirst(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 600}
	f := newFleet(t, of)
	for _, r := range f.replicas {
		r.Ranked(3)
	}
	f.noon()
	f.must(f.meter(0), Refund, 530) // 10 are left before the last tenth of 60, whose steps are of 20
	got := map[int]int{}
	for rank, want := range []int{15, 10, 10} {
		got[rank] = f.atOnce(30, func(m *Meter) bool { _, err := m.ReserveCall(t.Context(), rank, 2); return err == nil })
		if got[rank] != want {
			t.Errorf("%d calls of rank %d were let in, want %d", got[rank], rank, want)
		}
		f.load()
		if higher := f.meter(0).ReadyFor(rank + 1); rank < 2 && higher != nil {
			t.Errorf("after rank %d has met its ceiling a higher one is sent away: %v", rank, higher)
		}
		if !isLimit(f.meter(0).ReadyFor(rank), Guarded) {
			t.Errorf("rank %d has met its ceiling, and whether it may be offered is %v", rank, f.meter(0).ReadyFor(rank))
		}
	}
	f.wantTold("once, when the first of them was refused", "out guarded")
	if s := f.standing(); s.Used != 600 {
		t.Errorf("%d units were used, want all 600", s.Used)
	}
	f.shift(24 * time.Hour)
	f.load()
	if err := f.meter(0).ReadyFor(0); err != nil {
		t.Errorf("on the next day the lowest rank is not ready: %v", err)
	}
}

// What comes back of what was under way is offered again only when there is room for a call in the step below.
func TestMeter_ReadyFor_ARankIsOfferedAgainWhenTheStepBelowHasRoom(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 600}
	f := newFleet(t, of)
	m := f.meter(0)
	f.replicas[0].Ranked(2)
	f.noon()
	g := f.must(m, Refund, 600)
	if _, err := m.ReserveCall(t.Context(), 1, 2); !isLimit(err, Guarded) {
		t.Fatalf("at the cap: %v", err)
	}
	for _, step := range []struct {
		back            int64
		lowest, highest bool // are offered
	}{
		{31, false, false}, // 569 used
		{1, false, true},   // 568: two more fit below 570, which is where the upper half of the last tenth begins
		{29, false, true},  // 539
		{1, true, true},    // 538: two more fit below 540
	} {
		g.GiveBack(step.back)
		f.flush()
		f.load()
		if got := m.ReadyFor(0) == nil; got != step.lowest {
			t.Errorf("with %d used the lowest rank is offered: %t", f.standing().Used, got)
		}
		if got := m.ReadyFor(1) == nil; got != step.highest {
			t.Errorf("with %d used the highest rank is offered: %t", f.standing().Used, got)
		}
	}
}

// Whoever met the ceiling of a rank: all know it from how much is used, once the guard was reached at all.
func TestMeter_ReadyFor_ARankWithoutRoomIsNotOfferedWhereAnotherReplicaMetItsCeiling(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 600}
	f := newFleet(t, of)
	for _, r := range f.replicas {
		r.Ranked(3)
	}
	f.noon()
	g := f.must(f.meter(0), Refund, 560)
	if _, err := f.meter(0).ReserveCall(t.Context(), 0, 2); !isLimit(err, Guarded) {
		t.Fatalf("the lowest rank at its ceiling: %v", err)
	}
	for _, step := range []struct {
		more    int64
		offered [3]bool
	}{
		{18, [3]bool{false, true, true}},  // 578: one more fits below 580
		{1, [3]bool{false, false, true}},  // 579
		{19, [3]bool{false, false, true}}, // 598: one more fits below 600
		{1, [3]bool{false, false, false}}, // 599
	} {
		f.must(f.meter(0), Refund, step.more)
		f.load()
		for rank, want := range step.offered {
			if got := f.meter(1).ReadyFor(rank) == nil; got != want {
				t.Errorf("with %d used rank %d is offered by the other replica: %t", f.standing().Used, rank, got)
			}
		}
	}
	g.GiveBack(40) // 559 used
	f.flush()
	f.load()
	if err := f.meter(1).ReadyFor(1); err != nil {
		t.Errorf("with %d used the middle rank has room again, and is not offered: %v", f.standing().Used, err)
	}
}
