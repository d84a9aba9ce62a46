package source

import (
	"errors"
	"testing"
	"time"
)

func TestMeter_Reserve_WhenLittleIsLeftRefundsComeFirst(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 100}
	f := newFleet(t, of)
	f.noon()
	f.load()
	f.waiting = Waiting{Refunds: 3, Payouts: 2}
	f.must(f.meter(0), Settlement, 90)            // nothing is kept before that
	f.refused(f.meter(1), Settlement, 6, Guarded) // where it is not known yet how much is left
	f.wantTold("when too little is left", "out guarded")
	f.must(f.meter(1), Settlement, 5)
	f.refused(f.meter(0), Settlement, 1, Guarded)
	f.refused(f.meter(1), Other, 1, Guarded)
	f.must(f.meter(0), Payout, 2)
	f.refused(f.meter(1), Payout, 1, Guarded)
	f.must(f.meter(0), Refund, 3)
	f.refused(f.meter(1), Refund, 1, Guarded)
	if s := f.standing(); s.Used != 100 {
		t.Errorf("%d units were used, want all 100", s.Used)
	}
	f.wantTold("of the rest of that day")
}

// What Ready says once the guard was reached is for new work. A refund is held up only where nothing at all is left, and never by it where its unit was set aside.
func TestMeter_ReadyToRefund_OurOwnGuardHoldsUpOnlyWhatFindsNoUnit(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 100}
	f := newFleet(t, of)
	f.noon()
	m := f.meter(0)
	f.must(m, Settlement, 99)
	f.refused(m, Settlement, 2, Guarded)
	f.load()
	if !isLimit(m.Ready(), Guarded) || m.ReadyToRefund(1) != nil {
		t.Errorf("one unit is left: new work %v, a refund %v", m.Ready(), m.ReadyToRefund(1))
	}
	f.must(m, Refund, 1)
	f.load()
	if !isLimit(m.ReadyToRefund(1), Guarded) || m.ReadyToRefund(0) != nil {
		t.Errorf("none is left: a refund %v, one whose unit was set aside %v", m.ReadyToRefund(1), m.ReadyToRefund(0))
	}
	f.must(m, Refund, 0).Report(t.Context(), noCredit)
	if !isLimit(m.ReadyToRefund(0), Exhausted) {
		t.Errorf("they stop us: %v", m.ReadyToRefund(0))
	}
}

// A cap of 20 keeps two units for the refunds that wait, and a call wants two: with 17 used nobody is asked for a payment, and the day was used up.
func TestMeter_Ready_NobodyIsAskedToPayForACallThatFindsNoUnits(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 20, SurgePercent: 300}
	f := newFleet(t, of)
	f.noon()
	f.waiting = Waiting{Refunds: 2}
	m := f.meter(0)
	f.must(m, Settlement, 17)
	f.refused(m, Settlement, 2, Guarded)
	f.load()
	if !isLimit(m.Ready(), Guarded) {
		t.Errorf("a call finds no units, and whether it may be offered is %v", m.Ready())
	}
	f.shift(24 * time.Hour)
	if s := f.standing(); s.Busiest != 20 {
		t.Errorf("the day counts as %d, want that it was used up", s.Busiest)
	}
}

func TestMeter_Reserve_WhenNothingWaitsSettlementsUseAll(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 100}
	f := newFleet(t, of)
	f.noon()
	f.must(f.meter(0), Settlement, 88)
	for range 6 {
		f.must(f.meter(1), Settlement, 2)
	}
	f.refused(f.meter(0), Settlement, 1, Guarded)
}

func TestGrant_GiveBack_WhatIsGivenBackCanBeUsed(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 100}
	f := newFleet(t, of)
	f.noon()
	g := f.must(f.meter(0), Settlement, 2)
	f.must(f.meter(1), Refund, 98)
	f.refused(f.meter(1), Refund, 3, Guarded)
	f.wantTold("at the cap", "out guarded")
	f.load()
	if limit, ok := errors.AsType[*LimitError](f.meter(0).Ready()); !ok || limit.Why != Guarded {
		t.Errorf("at the cap it is ready: %v", limit)
	}
	g.GiveBack(1)
	g.GiveBack(5) // no more than were set aside
	f.flush()
	if s := f.standing(); s.Used != 98 || s.Denied != 3 {
		t.Errorf("used %d, denied %d; want 98 and 3", s.Used, s.Denied)
	}
	f.must(f.meter(1), Refund, 2)
	f.refused(f.meter(0), Refund, 1, Guarded)
	f.wantTold("at the cap again")
}

func (f *fleet) flush() {
	for _, r := range f.replicas {
		if err := r.flush(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
}
