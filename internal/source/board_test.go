package source

import (
	"testing"
	"time"
)

func TestMeter_Ready_SaysWithoutAskingWhatAReservationWouldMeet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	ready := func(when string, replica int, want Why) {
		t.Helper()
		err := f.meter(replica).Ready()
		if want == 0 && err != nil || want != 0 && !isLimit(err, want) {
			t.Errorf("%s: replica %d says %v, want %s", when, replica, err, want)
		}
	}
	ready("before anything was read", 0, 0)
	f.load()
	ready("at first", 0, 0)
	f.ask(f.meter(0), noCredit)
	ready("where it was refused, at once", 0, Exhausted)
	ready("elsewhere, before it is told", 1, 0)
	f.load()
	ready("when it is told", 1, Exhausted)
	f.shift(time.Hour)
	f.load()
	ready("at the end of the window", 1, 0)
	g := f.must(f.meter(1), Settlement, 1)
	ready("while it is tested", 1, Exhausted)
	g.Report(t.Context(), Verdict{Kind: Rejected, Said: "HTTP 401"})
	ready("when the test was refused", 1, Denied)
	f.tryNow()
	f.load()
	ready("when somebody says that it works", 0, 0)
	f.must(f.meter(0), Settlement, 1).Report(t.Context(), worked)
	ready("when it works", 0, 0)
	f.ask(f.meter(0), Verdict{Kind: Slowed, Wait: 30 * time.Second})
	ready("when it asks for a moment", 0, Paced)
}

func TestMeter_Reserve_OfTwoReasonsTheLongerOneIsTold(t *testing.T) {
	t.Parallel()
	of := hosted()
	of.Guard = Guard{Floor: 10}
	f := newFleet(t, of)
	f.noon()
	f.ask(f.meter(0), noCredit)
	if limit := f.refused(f.meter(0), Refund, 10, Guarded); limit.Wait < 10*time.Hour {
		t.Errorf("it is asked again in %s, want at midnight", limit.Wait)
	}
	s := f.standing()
	if s.Why != Exhausted || s.GuardedAt.IsZero() {
		t.Errorf("it stands as %+v, want both reasons", s)
	}
	f.wantTold("of both", "out exhausted", "out guarded")
}

func TestRegistry_Load_AChangeIsTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t, hosted())
	f.noon()
	conn, err := f.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `LISTEN `+Channel); err != nil {
		t.Fatal(err)
	}
	// What changes nothing for others is told to nobody: the next notification is that of the refusal.
	for range 3 {
		f.ask(f.meter(0), worked)
	}
	if _, err := f.db.Exec(t.Context(), `NOTIFY other`); err != nil {
		t.Fatal(err)
	}
	told := func() int {
		n := 0
		if err := conn.Conn().Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		for {
			got, err := conn.Conn().WaitForNotification(ended(t))
			if err != nil || got == nil {
				return n
			}
			n++
		}
	}
	if n := told(); n > 1 { // the row of the source was made
		t.Errorf("%d notifications of successes, want that of the first at most", n)
	}
	f.ask(f.meter(0), noCredit)
	if n := told(); n == 0 {
		t.Error("a refusal is told to nobody")
	}
}
