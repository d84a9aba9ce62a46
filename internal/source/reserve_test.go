package source

import (
	"testing"
	"time"
)

func TestMeter_Reserve_OfManyWhoWantTheLastUnitOneGetsIt(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 100}
	f := newFleet(t, of)
	f.noon()
	f.must(f.meter(0), Refund, 99)
	const rounds, requesters = 1000, 64
	for round := range rounds {
		if _, err := f.db.Exec(t.Context(), `UPDATE source_days SET used = 99`); err != nil {
			t.Fatal(err)
		}
		got := f.atOnce(requesters, func(m *Meter) bool {
			seen, err := m.facts(t.Context())
			if err != nil {
				t.Error(err)
				return false
			}
			g, err := m.spend(t.Context(), seen, 1, 100)
			if err != nil {
				t.Error(err)
			}
			return g != nil
		})
		if got != 1 {
			t.Fatalf("round %d: %d of %d got the last unit, want 1", round, got, requesters)
		}
	}
	if s := f.standing(); s.Used != 100 {
		t.Errorf("%d units were used, want 100", s.Used)
	}
}

func TestMeter_Reserve_TheFirstOfADayKeepsToTheCapToo(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 10}
	f := newFleet(t, of)
	limit := f.refused(f.meter(0), Refund, 11, Guarded)
	s := f.standing()
	if want := s.Day.AddDate(0, 0, 1); !limit.Until.Equal(want) || s.Used != 0 {
		t.Errorf("until %s with %d used, want until %s and none", limit.Until, s.Used, want)
	}
	f.must(f.meter(1), Refund, 10)
	f.refused(f.meter(0), Refund, 1, Guarded)
}

func TestMeter_Reserve_MidnightInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 10, SurgePercent: 200}
	f := newFleet(t, of)
	now := f.now()
	f.shift(nextDay(now).Add(-time.Minute).Sub(now)) // a minute before midnight
	f.must(f.meter(0), Refund, 10)
	f.refused(f.meter(0), Refund, 1, Guarded)
	f.wantTold("at the cap", "out guarded")
	f.must(f.meter(0), Refund, 0)
	f.shift(2 * time.Minute)

	// This process still has the cap of yesterday in mind; the statement does not take it.
	f.must(f.meter(0), Refund, 20)
	f.wantTold("after midnight", "back guarded", "resume")
	f.refused(f.meter(0), Refund, 1, Guarded)
	if s := f.standing(); s.Used != 20 || s.Busiest != 10 || s.Cap != 20 || s.Denied != 0 {
		t.Errorf("used %d of %d after a day of %d, denied %d; want 20 of 20 after 10", s.Used, s.Cap, s.Busiest, s.Denied)
	}
}
