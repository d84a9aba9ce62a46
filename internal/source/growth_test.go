package source

import (
	"errors"
	"testing"
	"time"
)

// day uses up to so many units in a day, in ten parts from both replicas, and moves on to the next. It returns what was let through.
func (f *fleet) day(units int64) (used int64) { return f.dayOf(units, (units+9)/10) }

// dayOf is day with parts of so many units.
func (f *fleet) dayOf(units, each int64) (used int64) {
	f.t.Helper()
	for i := int64(0); i*each < units; i++ {
		part := min(each, units-i*each)
		_, err := f.meter(int(i%2)).Reserve(f.t.Context(), Refund, part)
		if err == nil {
			used += part
		} else if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Why != Guarded {
			f.t.Fatal(err)
		}
	}
	f.shift(24 * time.Hour)
	return used
}

func TestMeter_GrowthOfFortyPercentAWeekNeverMeetsTheGuard(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 1000, SurgePercent: 300}
	f := newFleet(t, of)
	f.noon()
	units := 900.0
	for day := range 30 {
		if got := f.day(int64(units)); got != int64(units) {
			t.Fatalf("day %d: %d of %d units were let through", day, got, int64(units))
		}
		units *= 1.04924 // 1.4 in seven days
	}
	f.wantTold("in 30 days")
	if units < 3700 {
		t.Fatalf("it has grown to %.0f only", units)
	}
}

func TestMeter_ALoopIsStoppedTheSameDay(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	f.day(4000)
	f.day(3000)
	const each = 100
	var let int64
	for range 50 * 4000 / each {
		_, err := f.meter(1).Reserve(t.Context(), Settlement, each)
		if err == nil {
			let += each
			continue
		}
		if limit, ok := errors.AsType[*LimitError](err); !ok || limit.Why != Guarded {
			t.Fatal(err)
		}
		if let >= 12000 {
			break // the rest of the loop is denied like this one
		}
	}
	if let != 12000 {
		t.Errorf("%d units were let through, want three times the 4000 of the busiest day", let)
	}
	f.wantTold("of the loop", "out guarded")
	s := f.standing()
	if s.GuardedAt.IsZero() || s.Why != 0 || s.Used != 12000 || s.Cap != 12000 || s.Busiest != 4000 {
		t.Errorf("it stands as %+v", s)
	}
	f.load()
	for i := range f.replicas {
		limit, ok := errors.AsType[*LimitError](f.meter(i).Ready())
		if !ok || limit.Why != Guarded || !limit.Until.Equal(s.Day.AddDate(0, 0, 1)) {
			t.Errorf("replica %d is ready: %v", i, limit)
		}
	}
	f.shift(24 * time.Hour)
	f.load()
	if err := f.meter(0).Ready(); err != nil {
		t.Errorf("on the next day: %v", err)
	}
	f.must(f.meter(0), Settlement, 2)
	f.wantTold("on the next day", "back guarded", "resume")
}

func TestMeter_DemandThatStaysLiftsTheCapEveryDay(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 100, SurgePercent: 300}
	f := newFleet(t, of)
	f.noon()
	for day, want := range []int64{100, 300, 900, 2700, 8100} {
		if got := f.dayOf(10_000, 100); got != want {
			t.Errorf("day %d: %d units were let through, want %d", day, got, want)
		}
	}
}

// What is given back of a day that reached its cap does not make it a lesser one: half of what every call sets aside comes back.
func TestMeter_ADayThatReachedItsCapCountsAtTheCap(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 100, SurgePercent: 300}
	f := newFleet(t, of)
	f.noon()
	g := f.must(f.meter(0), Settlement, 100)
	f.refused(f.meter(1), Settlement, 2, Guarded)
	g.GiveBack(50)
	f.flush()
	f.shift(24 * time.Hour)
	if s := f.standing(); s.Busiest != 100 || s.Cap != 300 {
		t.Errorf("the cap is %d after a day of %d, want 300 after 100", s.Cap, s.Busiest)
	}
	// One request that wants more than a day has does not use the day up.
	f.refused(f.meter(1), Settlement, 301, Guarded)
	f.shift(24 * time.Hour)
	if s := f.standing(); s.Busiest != 100 {
		t.Errorf("the busiest day has %d, want 100", s.Busiest)
	}
}

// The cap follows the days on which the source worked, however long ago they are.
func TestMeter_ALongOutageDoesNotDropTheCap(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	for _, units := range []int64{2000, 5000, 3000} {
		f.day(units)
	}
	for range 9 {
		f.ask(f.meter(0), noCredit)
		f.shift(24 * time.Hour)
	}
	if s := f.standing(); s.Busiest != 5000 || s.Cap != 15000 || s.Used != 0 {
		t.Errorf("after nine days the cap is %d after %d, want 15000 after 5000", s.Cap, s.Busiest)
	}
	// And a week of quiet days drops it: the busiest is one of seven.
	f.tryNow()
	f.ask(f.meter(0), worked)
	f.shift(24 * time.Hour)
	for range 7 {
		f.day(1000)
	}
	if s := f.standing(); s.Busiest != 1000 || s.Cap != 5000 {
		t.Errorf("after seven quiet days the cap is %d after %d, want the floor after 1000", s.Cap, s.Busiest)
	}
}
