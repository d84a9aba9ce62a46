package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/delivery"
	"market/internal/notify"
	"market/internal/postgres/pgtest"
	"market/internal/pulse"
	"market/internal/replica"
	"market/internal/switches"
)

// at once tells what it sees in the first look.
var atOnce = Pace{Look: time.Hour, Deep: time.Hour}

// A process is one of a fleet, as a watch sees it.
type member struct {
	*Watch
	db    *pgxpool.Pool
	why   error // for which the network is not ready
	tries delivery.Tries
	on    []switches.Switch // of the operator's
	clock time.Duration     // ahead
	told  []Change
}

func newMember(t *testing.T, db *pgxpool.Pool, change func(*Config)) *member {
	t.Helper()
	m := &member{db: db}
	c := Config{
		DB: db, Self: uuid.Must(uuid.NewV7()), Address: "127.0.0.1:4021", Loops: pulse.New(time.Now, nil), Pace: atOnce,
		Ready: func(context.Context) map[string]error { return map[string]error{network.ID: m.why} },
		Tries: func() delivery.Tries { return m.tries },

		Switches: func() []switches.Switch { return m.on },
		Clock:    func() time.Time { return time.Now().Add(m.clock) },
		Tell:     func(c Change) { m.told = append(m.told, c) },
		OnError:  func(err error) { t.Error(err) },
	}
	if change != nil {
		change(&c)
	}
	m.Watch = New(c)
	return m
}

// beat says that the process runs.
func (m *member) beat(t *testing.T) {
	t.Helper()
	if err := (replica.Store{}).Beat(t.Context(), m.db, m.Self, m.Address, replica.Terms{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// heardLast puts back when this process heard last what the other one saw.
func (m *member) heardLast(of *member, ago time.Duration) {
	last := m.look.heard[of.Self]
	last.since = time.Now().Add(-ago)
	m.look.heard[of.Self] = last
}

// look lets all processes beat and look, in their order.
func look(t *testing.T, fleet ...*member) {
	t.Helper()
	for _, m := range fleet {
		m.beat(t)
	}
	for _, m := range fleet {
		if err := m.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// wantNotices compares the open notices of a kind, and how many changes all processes told of.
func wantNotices(t *testing.T, when string, db *pgxpool.Pool, kind notify.Kind, want, changes int, fleet ...*member) {
	t.Helper()
	open, err := notify.Store{}.OpenSubjects(t.Context(), db, notify.Conditions())
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, m := range fleet {
		for _, c := range m.told {
			if c.Kind == kind {
				told++
			}
		}
	}
	if len(open[kind]) != want || told != changes {
		t.Errorf("%s: %d notices of %s are open and %d changes told, want %d and %d", when, len(open[kind]), kind, told, want, changes)
	}
}

func TestWatch_OfTwoProcessesThatDisagreeTheOneInTroubleIsTold(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	well, ill := newMember(t, db, nil), newMember(t, db, nil)
	fleet := []*member{well, ill}
	look(t, fleet...)
	wantNotices(t, "all is well", db, notify.NetworkNotReady, 0, 0, fleet...)
	ill.why = errors.New("node: HTTP status 500")
	for range 3 {
		look(t, fleet...)
		wantNotices(t, "one says no", db, notify.NetworkNotReady, 1, 1, fleet...)
	}
	well.why = ill.why
	look(t, fleet...)
	ill.why = nil
	look(t, fleet...)
	wantNotices(t, "the other one says no", db, notify.NetworkNotReady, 1, 1, fleet...)
	well.why = nil
	look(t, fleet...)
	look(t, fleet...)
	wantNotices(t, "all say yes", db, notify.NetworkNotReady, 0, 2, fleet...)
}

// A heartbeat can be late: what the process sees is not over by that.
func TestWatch_WhoMissesABeatTakesNoTroubleAway(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	well, ill := newMember(t, db, nil), newMember(t, db, nil)
	ill.why = errors.New("node: HTTP status 500")
	look(t, well, ill)
	pgtest.Shift(t, db, replica.AliveFor)
	look(t, well)
	wantNotices(t, "a beat is missed", db, notify.NetworkNotReady, 1, 1, well, ill)
	look(t, well, ill)
	look(t, well, ill)
	wantNotices(t, "it beats again", db, notify.NetworkNotReady, 1, 1, well, ill)
	pgtest.Shift(t, db, replica.AliveFor)
	look(t, well)
	look(t, well)
	wantNotices(t, "it is gone", db, notify.NetworkNotReady, 0, 2, well, ill)
}

func TestWatch_PaymentsThatFailOnAllProcessesAreOneTrouble(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	one, two := newMember(t, db, nil), newMember(t, db, nil)
	one.tries = delivery.Tries{Failed: 2, Payers: payers[:1]}
	two.tries = delivery.Tries{Failed: 2, Payers: payers[1:]}
	look(t, one, two)
	look(t, one, two)
	wantNotices(t, "four failed", db, notify.NothingSettles, 0, 0, one, two)
	two.tries.Failed = 3
	look(t, one, two)
	look(t, one, two)
	wantNotices(t, "five failed", db, notify.NothingSettles, 1, 1, one, two)
	one.tries, two.tries = delivery.Tries{}, delivery.Tries{}
	look(t, one, two)
	look(t, one, two)
	wantNotices(t, "nobody tries", db, notify.NothingSettles, 1, 1, one, two)
	one.tries = delivery.Tries{Settled: 1}
	look(t, one, two)
	look(t, one, two)
	wantNotices(t, "one settled", db, notify.NothingSettles, 0, 2, one, two)
}

func TestWatch_AWrongClockIsTold(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	m := newMember(t, db, nil)
	pgtest.Shift(t, db, time.Hour) // the market's time is nobody's clock
	for range 2 {                  // the clocks are compared in one look, and judged in the next
		look(t, m)
	}
	wantNotices(t, "a right clock", db, notify.ClockApart, 0, 0, m)
	m.clock = -time.Minute
	look(t, m)
	look(t, m)
	wantNotices(t, "a wrong clock", db, notify.ClockApart, 1, 1, m)
	m.clock = 0
	for range 3 {
		look(t, m)
	}
	wantNotices(t, "a clock that was put right", db, notify.ClockApart, 0, 2, m)
}

// The watch itself is watched by the others.
func TestWatch_AProcessThatBeatsAndDoesNotLookIsToldByAnother(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	well, hangs := newMember(t, db, nil), newMember(t, db, nil)
	look(t, well, hangs)
	pgtest.Shift(t, db, time.Hour) // it has not looked since, and had no time to
	hangs.beat(t)
	look(t, well)
	wantNotices(t, "the database's clock was put forward", db, notify.WorkStopped, 0, 0, well, hangs)
	well.heardLast(hangs, silentAfter+time.Second)
	hangs.beat(t)
	look(t, well)
	wantNotices(t, "it has not looked for two minutes", db, notify.WorkStopped, 1, 1, well, hangs)
	for range 4 { // it is read, seen no more, and found away twice
		look(t, well, hangs)
	}
	wantNotices(t, "it looks again", db, notify.WorkStopped, 0, 2, well, hangs)
}

// While the database is away nobody can write that it looks, and nobody could read it.
func TestWatch_AfterADatabaseOutageNoOtherProcessIsTakenForSilent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	first, second := newMember(t, db, nil), newMember(t, db, nil)
	look(t, first, second)
	look(t, first, second)
	away, cancel := context.WithCancel(t.Context())
	cancel()
	first.heardLast(second, silentAfter+time.Second)
	if err := first.Look(away); err == nil {
		t.Fatal("it could look without a database")
	}
	first.beat(t)
	second.beat(t) // it beats before it looks
	look(t, first)
	wantNotices(t, "the database is back, and the second has not looked yet", db, notify.WorkStopped, 0, 0, first, second)
	first.heardLast(second, silentAfter+time.Second)
	look(t, first)
	wantNotices(t, "it does not look for two minutes after that", db, notify.WorkStopped, 1, 1, first, second)
}

func TestWatch_WorkThatHangsIsToldWithItsProcess(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var (
		begun   = time.Now()
		passed  atomic.Int64
		running sync.WaitGroup
		release = make(chan struct{})
		beaten  = make(chan struct{})
	)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); running.Wait() })
	loops := pulse.New(func() time.Time { return begun.Add(time.Duration(passed.Load())) }, nil)
	loops.Go(ctx, &running, "sweeper", func(ctx context.Context) {
		select {
		case <-release:
		case <-ctx.Done():
			return
		}
		pulse.Beat(ctx, time.Second)
		close(beaten)
		<-ctx.Done()
	})
	well, hangs := newMember(t, db, nil), newMember(t, db, func(c *Config) { c.Loops = loops })
	look(t, well, hangs)
	wantNotices(t, "it has just begun", db, notify.WorkStopped, 0, 0, well, hangs)
	passed.Store(int64(6 * time.Minute))
	for range 3 {
		look(t, well, hangs)
	}
	wantNotices(t, "it hangs", db, notify.WorkStopped, 1, 1, well, hangs)
	for _, m := range []*member{well, hangs} {
		for _, c := range m.told {
			if !strings.Contains(c.Text, "sweeper") || !strings.Contains(c.Text, hangs.Self.String()) {
				t.Errorf("it is not said what hangs, and where: %s", c.Text)
			}
		}
	}
	close(release)
	<-beaten
	for range 4 {
		look(t, well, hangs)
	}
	wantNotices(t, "it came round", db, notify.WorkStopped, 0, 2, well, hangs)
}

// A switch that is on is told at once and by its own notice, however many processes know of it; why a network that it stops is not ready needs no other.
func TestWatch_WhatTheOperatorStoppedIsToldAsLongAsItIs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	fleet := []*member{newMember(t, db, nil), newMember(t, db, nil)}
	stop := switches.Switch{Name: switches.Name{Kind: switches.Stop402, Subject: network.ID}, On: true, By: "admin token", Reason: "the token is being upgraded", Since: time.Unix(1, 0)}
	suspend := switches.Switch{Name: switches.Name{Kind: switches.SuspendStrikes}, On: true, By: "wallet 0x01", Reason: "our proxy", Since: time.Unix(1, 0)}
	payouts := switches.Switch{Name: switches.Name{Kind: switches.StopPayouts}, On: true, By: "admin token", Reason: "the books", Since: time.Unix(1, 0)}
	for _, m := range fleet {
		m.on, m.why = []switches.Switch{stop, suspend, payouts}, fmt.Errorf("%w on %s", switches.ErrStopped, network.ID)
	}
	for range 2 {
		look(t, fleet...)
		wantNotices(t, "all are on", db, notify.PaymentsStopped, 1, 1, fleet...)
		wantNotices(t, "all are on", db, notify.StrikesSuspended, 1, 1, fleet...)
		wantNotices(t, "all are on", db, notify.PayoutsStopped, 1, 1, fleet...)
		wantNotices(t, "all are on", db, notify.NetworkNotReady, 0, 0, fleet...)
	}
	for _, m := range fleet {
		for _, c := range m.told {
			if want := map[notify.Kind]string{notify.PaymentsStopped: "the token is being upgraded", notify.StrikesSuspended: "by wallet 0x01", notify.PayoutsStopped: "the books"}[c.Kind]; want == "" || !strings.Contains(c.Text, want) {
				t.Errorf("told is %+v", c)
			}
		}
		m.on, m.why = nil, nil
	}
	look(t, fleet...)
	look(t, fleet...)
	wantNotices(t, "all are off", db, notify.PaymentsStopped, 0, 2, fleet...)
	wantNotices(t, "all are off", db, notify.StrikesSuspended, 0, 2, fleet...)
	wantNotices(t, "all are off", db, notify.PayoutsStopped, 0, 2, fleet...)
}
