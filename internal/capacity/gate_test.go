package capacity

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// A clock that the test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// pass lets time pass in which the gate's replica beats.
func (c *clock) pass(g *Gate, d time.Duration) {
	c.at = c.at.Add(d)
	g.Alive(c.at, []uuid.UUID{g.self})
}

// newAlone returns the gate of a fleet of one, and its clock.
func newAlone() (*Gate, *clock) {
	c := &clock{start}
	self := uuid.New()
	g := NewGate(self, 3*time.Second, c.now)
	g.Alive(c.at, []uuid.UUID{self})
	return g, c
}

// taken takes as many places as there are, up to most.
func taken(g *Gate, id uuid.UUID, l Limit, most int) (places []*Place) {
	for range most {
		p := g.Place(id, l)
		if _, ok := p.Take(); !ok {
			break
		}
		places = append(places, p)
	}
	return places
}

// asked lets all have their turn without waiting for it.
func (c *clock) asked(places []*Place) {
	for _, p := range places {
		p.gate.services[p.service].turn(c.at, p.pace)
		p.spent = true
	}
}

func TestGate_LetsInAsManyAtOnceAsDeclared(t *testing.T) {
	t.Parallel()
	g, _ := newAlone()
	id, l := uuid.New(), Limit{Places: 3}
	places := taken(g, id, l, 10)
	if len(places) != 3 {
		t.Fatalf("%d were let in, want 3", len(places))
	}
	if wait, free := g.Look(id, l); free || wait != time.Second {
		t.Errorf("full: free = %v, again in %v", free, wait)
	}
	if _, free := g.Look(uuid.New(), l); !free {
		t.Error("another service has no room")
	}
	places[1].Leave()
	places[1].Leave()
	if got := len(taken(g, id, l, 10)); got != 1 {
		t.Errorf("one left, and %d were let in", got)
	}
}

func TestGate_WithoutALimitEverybodyIsLetInAndCountsWhenOneIsDeclared(t *testing.T) {
	t.Parallel()
	g, _ := newAlone()
	id := uuid.New()
	if got := len(taken(g, id, Limit{}, 1000)); got != 1000 {
		t.Errorf("%d were let in, want all", got)
	}
	if _, free := g.Look(id, Limit{Places: 1000}); free {
		t.Error("those that were let in before the limit was declared do not count")
	}
}

func TestGate_BeforeItKnowsTheFleetItLetsNobodyInToALimitedService(t *testing.T) {
	t.Parallel()
	c := &clock{start}
	g := NewGate(uuid.New(), 3*time.Second, c.now)
	for _, l := range []Limit{{Places: 100}, {Rate: RateMax}} {
		if wait, ok := g.Place(uuid.New(), l).Take(); ok || wait != time.Second {
			t.Errorf("%+v: taken = %v, again in %v", l, ok, wait)
		}
	}
	if _, ok := g.Place(uuid.New(), Limit{}).Take(); !ok {
		t.Error("a service without a limit is closed")
	}
}

func TestGate_ARateLetsInASecondOfItAtOnceAndThenKeepsItsPace(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rate Rate
		once int
		pace time.Duration
	}{
		"one in ten seconds": {1, 1, 10 * time.Second},
		"one a second":       {10, 1, time.Second},
		"two and a half":     {25, 2, 400 * time.Millisecond},
		"fifty":              {500, 50, 20 * time.Millisecond},
	}
	for name, tt := range tests {
		g, c := newAlone()
		id, l := uuid.New(), Limit{Rate: tt.rate}
		first := taken(g, id, l, 100)
		if got := len(first); got != tt.once {
			t.Errorf("%s: %d were let in at once, want %d", name, got, tt.once)
		}
		c.asked(first)
		if wait, free := g.Look(id, l); free || wait <= 0 || wait > tt.pace {
			t.Errorf("%s: free = %v, again in %v", name, free, wait)
		}
		c.pass(g, time.Hour)
		c.asked(taken(g, id, l, 100))
		for range 3 {
			wait, _ := g.Look(id, l)
			c.pass(g, wait-1)
			if got := len(taken(g, id, l, 100)); got != 0 {
				t.Errorf("%s: %d were let in before their time", name, got)
			}
			c.at = c.at.Add(1)
			next := taken(g, id, l, 100)
			if got := len(next); got != 1 {
				t.Errorf("%s: %d were let in at their time, want one", name, got)
			}
			c.asked(next)
		}
	}
}

func TestGate_ACallCountsForTheRateOnlyWhereTheServiceWasAsked(t *testing.T) {
	t.Parallel()
	for asked, want := range map[bool]int{false: 1, true: 0} {
		g, c := newAlone()
		id, l := uuid.New(), Limit{Rate: 10}
		p := taken(g, id, l, 1)[0]
		c.at = c.at.Add(600 * time.Millisecond) // a settlement takes its time
		if asked {
			p.Turn()
		}
		p.Leave()
		if got := len(taken(g, id, l, 2)); got != want {
			t.Errorf("asked = %v: %d are let in, want %d", asked, got, want)
		}
	}
}

func TestGate_WhatIsGivenBackNeverSavesUpMoreThanASecond(t *testing.T) {
	t.Parallel()
	g, c := newAlone()
	id, l := uuid.New(), Limit{Rate: 20}
	places := taken(g, id, l, 2)
	c.pass(g, time.Minute)
	for _, p := range places {
		p.Leave()
	}
	if got := len(taken(g, id, l, 10)); got != 2 {
		t.Errorf("%d are let in at once, want 2", got)
	}
}

func TestGate_AFasterRateHoldsAtOnce(t *testing.T) {
	t.Parallel()
	g, c := newAlone()
	id, l := uuid.New(), Limit{Rate: 10}
	slow := g.Place(id, Limit{Rate: RateMin})
	slow.Take()
	slow.Leave()
	g.services[id].bucket.take(c.at, slow.limit.Rate.pace(1))
	if wait, _ := g.Look(id, l); wait != time.Second {
		t.Errorf("at one a second the next comes in after %v", wait)
	}
	c.at = c.at.Add(time.Second)
	if got := len(taken(g, id, l, 5)); got != 1 {
		t.Errorf("a second later %d are let in, want one", got)
	}
}

func TestGate_AReplicaHasItsPartOfTheRate(t *testing.T) {
	t.Parallel()
	c := &clock{start}
	members := ids(4)
	g := NewGate(members[0], 3*time.Second, c.now)
	g.Alive(c.at, members)
	c.at = c.at.Add(3 * time.Second)
	g.Alive(c.at, members)
	id, l := uuid.New(), Limit{Rate: 400}
	if got := len(taken(g, id, l, 100)); got != 10 {
		t.Errorf("of 40 a second one of four replicas lets in %d at once, want 10", got)
	}
	if wait, _ := g.Look(id, l); wait != 100*time.Millisecond {
		t.Errorf("the next in %v, want a tenth of a second", wait)
	}
}

func TestGate_OfManyThatComeAtOnceNotOneTooManyIsLetIn(t *testing.T) {
	t.Parallel()
	g, _ := newAlone()
	id, l := uuid.New(), Limit{Places: 7, Rate: RateMax}
	var (
		wg sync.WaitGroup
		in = make(chan *Place, 200)
	)
	for range 200 {
		wg.Go(func() {
			if p := g.Place(id, l); func() bool { _, ok := p.Take(); return ok }() {
				in <- p
			}
		})
	}
	wg.Wait()
	close(in)
	n := 0
	for p := range in {
		n++
		p.Leave()
	}
	if n != 7 {
		t.Errorf("%d were let in, want 7", n)
	}
}

func TestGate_Retire_GivesTheSharesUpOnceNoCallHasAPartOfThem(t *testing.T) {
	t.Parallel()
	g, _ := newAlone()
	l := Limit{Places: 2}
	limited := taken(g, uuid.New(), l, 1)[0]
	taken(g, uuid.New(), Limit{}, 1)
	if g.Retire() {
		t.Error("it retires while a call has a place")
	}
	limited.Leave()
	if !g.Retire() {
		t.Error("it does not retire")
	}
	if _, free := g.Look(uuid.New(), l); free {
		t.Error("it goes on to let calls in")
	}
}

func TestGate_ForgetsWhatIsIdleAndNothingElse(t *testing.T) {
	t.Parallel()
	g, c := newAlone()
	busy, waiting, idle := uuid.New(), uuid.New(), uuid.New()
	taken(g, busy, Limit{Places: 1}, 1)
	for _, p := range append(taken(g, waiting, Limit{Rate: RateMin}, 1), taken(g, idle, Limit{Rate: RateMax}, 1)...) {
		p.Turn()
		p.Leave()
	}
	c.at = c.at.Add(time.Second)
	g.Alive(c.at, []uuid.UUID{g.self})
	if g.services[busy] == nil || g.services[waiting] == nil || g.services[idle] != nil {
		t.Errorf("kept: %v", g.services)
	}
}

func TestPlace_Await_TakesThePlaceThatBecomesFreeAndGivesUpInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		self := uuid.New()
		g := NewGate(self, 3*time.Second, time.Now)
		g.Alive(time.Now(), []uuid.UUID{self})
		id, l := uuid.New(), Limit{Places: 1}
		first, second, third := g.Place(id, l), g.Place(id, l), g.Place(id, l)
		for range 2 { // a free place, and one's own
			if !first.Await(t.Context(), time.Second) {
				t.Fatal("the place is not to be had")
			}
		}
		time.AfterFunc(2*time.Second, first.Leave)
		began := time.Now()
		if third.Await(t.Context(), time.Second) || time.Since(began) != time.Second {
			t.Errorf("it gave up after %v", time.Since(began))
		}
		if !second.Await(t.Context(), 5*time.Second) || time.Since(began) > 2*time.Second+lookEvery {
			t.Errorf("it has its place after %v", time.Since(began))
		}
	})
}

func TestPlace_Turn_SpreadsWhatWasLetInAtOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit Limit
		calls int
		want  []time.Duration // after the first, when each has its turn
	}{
		"four a second": {Limit{Rate: 40}, 4, []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond}},
		"no rate":       {Limit{Places: 3}, 3, []time.Duration{0, 0, 0}},
		"one alone":     {Limit{Rate: 1}, 1, []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				self := uuid.New()
				g := NewGate(self, 3*time.Second, time.Now)
				g.Alive(time.Now(), []uuid.UUID{self})
				if got := turnsOf(taken(g, uuid.New(), tt.limit, tt.calls)); !slices.Equal(got, tt.want) {
					t.Errorf("turns after %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// turnsOf lets all come for their turn at once and returns when they had it.
func turnsOf(places []*Place) (after []time.Duration) {
	began, turns := time.Now(), make(chan time.Duration, len(places))
	for _, p := range places {
		go func() {
			p.Turn()
			turns <- time.Since(began)
		}()
	}
	for range places {
		after = append(after, <-turns)
	}
	slices.Sort(after)
	return after
}

// A settlement may take long, and one block may settle the payments of all that were let in meanwhile.
func TestPlace_Turn_NobodyIsLetInWhoCouldHaveToWaitTooLong(t *testing.T) {
	t.Parallel()
	for name, rate := range map[string]Rate{"ten a second": 100, "one in ten seconds": RateMin} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				self := uuid.New()
				g := NewGate(self, 3*time.Second, time.Now)
				id, l, pace := uuid.New(), Limit{Rate: rate}, rate.pace(1)
				var in []*Place
				collect := func(seconds int) {
					for range seconds {
						g.Alive(time.Now(), []uuid.UUID{self})
						in = append(in, taken(g, id, l, 1000)...)
						time.Sleep(time.Second)
					}
				}
				collect(30)
				most := int(turnMax/pace) + 1
				if len(in) != most {
					t.Errorf("%d wait for their turns, want %d", len(in), most)
				}
				if wait, free := g.Look(id, l); free || wait != again {
					t.Errorf("room = %v, again in %v", free, wait)
				}
				turns := turnsOf(in)
				for i := range turns {
					if want := time.Duration(i) * pace; turns[i] != want {
						t.Errorf("turn %d after %v, want %v", i, turns[i], want)
					}
				}
				if last := turns[len(turns)-1]; last > turnMax {
					t.Errorf("one waits %v", last)
				}
				for _, p := range in {
					p.Leave()
				}
				in = nil
				collect(int(pace/time.Second) + 2)
				if len(in) == 0 {
					t.Error("nobody is let in after them")
				}
				for _, p := range in { // they are not asked after all
					p.Leave()
				}
				if left := g.services[id].queue; left != 0 {
					t.Errorf("%v are left in the queue of nobody", left)
				}
			})
		})
	}
}
