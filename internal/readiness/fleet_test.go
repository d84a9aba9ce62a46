package readiness

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
)

const (
	simStep = 20 * time.Millisecond
	simTime = 30 * time.Second
	simMost = 5 // processes at once
)

// A sim is a fleet in made-up time: keepers, the table of their rows, and an authority that falls silent now and then.
type sim struct {
	t       *testing.T
	dice    *rand.Rand
	now     time.Time
	rows    map[uuid.UUID]Member
	all     []*simReplica
	made    byte
	down    bool      // the authority
	silent  time.Time // until when it is down whatever else
	proof   time.Time // when the newest proof of anybody began
	sent    []simSent
	most    int64
	entered int // processes that admitted something
}

type simSent struct {
	at     time.Time
	amount int64
}

// A simReplica is one process. What it does takes time, in which others go on.
type simReplica struct {
	*Keeper
	id       uuid.UUID
	stalled  time.Time // until when it cannot reach the database
	nextBeat time.Time
	reading  *Reading // read, and not taken in yet
	heardAt  time.Time
	heard    *Reading // taken in, and not written yet
	wroteAt  time.Time
	lookAt   time.Time
	looking  bool
	began    time.Time
	ends     time.Time
	answers  bool
	admitted bool
	trap     bool // the authority falls silent once it has answered this one
}

func newSim(t *testing.T, seed uint64) *sim {
	return &sim{t: t, dice: rand.New(rand.NewPCG(seed, 3)), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), rows: map[uuid.UUID]Member{}} //nolint:gosec // no secret
}

func (s *sim) upTo(d time.Duration) time.Duration { return time.Duration(s.dice.Int64N(int64(d))) }

// start begins a process as the app does: its row is written first, and then read.
func (s *sim) start(share int) *simReplica {
	s.made++
	terms := Terms{Budget: 200 * dollar, Rate: (10 + s.dice.Int64N(40)) * dollar, Share: share}
	terms.Burst = dollar + s.dice.Int64N(10*dollar)
	r := &simReplica{id: uuid.UUID{s.made}, nextBeat: s.now, lookAt: s.now}
	r.Keeper = New(map[string]Check{chainA: nil}, Options{Self: r.id, Own: terms, Limit: time.Second, Now: func() time.Time { return s.now }})
	s.rows[r.id] = Member{ID: r.id, Beat: s.now, Terms: terms}
	s.all = append(s.all, r)
	return r
}

func (s *sim) read() *Reading {
	r := &Reading{Sent: s.now, At: s.now}
	for _, m := range s.rows {
		if s.now.Sub(m.Beat) < AliveFor {
			r.Members = append(r.Members, m)
		}
	}
	return r
}

func (s *sim) stepBeat(r *simReplica) {
	if s.now.Before(r.stalled) {
		return
	}
	switch {
	case r.heard != nil && !s.now.Before(r.wroteAt):
		if row, there := s.rows[r.id]; !there || row.Beat.Before(r.heard.At) {
			s.rows[r.id] = Member{ID: r.id, Beat: r.heard.At, Terms: r.opts.Own}
		}
		r.Beat(r.heard.Sent)
		r.heard, r.nextBeat = nil, r.heard.Sent.Add(time.Second)
	case r.heard == nil && r.reading != nil && !s.now.Before(r.heardAt):
		r.Heard(*r.reading)
		r.heard, r.reading, r.wroteAt = r.reading, nil, s.now.Add(s.upTo(400*time.Millisecond))
	case r.heard == nil && r.reading == nil && !s.now.Before(r.nextBeat):
		r.reading, r.heardAt = s.read(), s.now.Add(s.upTo(400*time.Millisecond))
	}
}

func (s *sim) stepLook(r *simReplica) {
	n := r.networks[chainA]
	select {
	case <-n.wake:
		if !r.looking {
			r.lookAt = s.now
		}
	default:
	}
	switch {
	case r.looking && !s.now.Before(r.ends):
		r.looking, r.lookAt = false, r.began.Add(pause(r.useful(n)))
		if !r.answers {
			r.takeIn(n, Whole(errors.New("it does not answer")), r.began)
			return
		}
		r.takeIn(n, Finding{}, r.began)
		if r.began.After(s.proof) {
			s.proof = r.began
		}
		if r.trap && r.joined && !r.began.Before(r.notBefore) {
			r.trap, s.silent = false, s.now.Add(time.Minute)
		}
	case !r.looking && !s.now.Before(r.lookAt):
		r.looking, r.began, r.answers = true, s.now, !s.down && !s.now.Before(s.silent)
		r.ends = s.now.Add(s.upTo(500 * time.Millisecond))
	}
}

// admit sends as much as the process lets through: all that its bucket has.
func (s *sim) admit(r *simReplica) {
	r.networks[chainA].bucket.fill(s.now)
	amount := r.networks[chainA].bucket.level
	if amount == 0 {
		return
	}
	if a, err := r.take(chainA, amount); err != nil || a.taken.due.After(s.now) {
		return
	}
	if !r.admitted {
		r.admitted = true
		s.entered++
	}
	s.sent = append(s.sent, simSent{s.now, amount})
}

// step is what all processes do in a moment.
func (s *sim) step(seed uint64) {
	s.t.Helper()
	for _, i := range s.dice.Perm(len(s.all)) {
		s.stepBeat(s.all[i])
		s.stepLook(s.all[i])
		s.admit(s.all[i])
	}
	s.holds(seed)
}

// holds adds up what was sent since the newest proof.
func (s *sim) holds(seed uint64) {
	s.t.Helper()
	sum, kept := int64(0), s.sent[:0]
	for _, one := range s.sent {
		if one.at.Before(s.proof) {
			continue
		}
		kept = append(kept, one)
		sum += one.amount
	}
	s.sent, s.most = kept, max(s.most, sum)
	if sum > 200*dollar {
		s.t.Fatalf("seed %d: %s USD were sent since the last proof, %s ago, by %d processes", seed, usd(sum), s.now.Sub(s.proof), len(s.all))
	}
}

// What all processes together send since the newest proof of any of them is never more than the budget, while processes come, leave, crash and lose their
// database, and the authority falls silent.
func TestFleet_NeverSendsMoreThanTheBudgetSinceTheLastProof(t *testing.T) {
	t.Parallel()
	var most int64
	entered := 0
	for seed := range uint64(20) {
		s := newSim(t, seed)
		begin := s.now
		share := 0
		if seed%3 == 0 {
			share = WholeShare / simMost / 2 // those that have left for good may count for three seconds yet
		}
		for range 1 + s.dice.IntN(3) {
			s.start(share)
		}
		for s.now.Sub(begin) < simTime {
			s.now = s.now.Add(simStep)
			switch s.dice.IntN(400) {
			case 0, 1:
				if len(s.all) < simMost {
					s.start(share)
				}
			case 2: // one crashes
				if len(s.all) > 1 {
					s.all = s.all[1:]
				}
			case 3: // one leaves
				if len(s.all) > 1 {
					s.all[0].Leave()
					delete(s.rows, s.all[0].id)
					s.all = s.all[1:]
				}
			case 4, 5:
				if len(s.all) > 0 {
					s.all[s.dice.IntN(len(s.all))].stalled = s.now.Add(s.upTo(6 * time.Second))
				}
			case 6, 7, 8, 9:
				s.down = !s.down
			}
			s.step(seed)
		}
		most, entered = max(most, s.most), entered+s.entered
	}
	if most < 150*dollar || entered < 30 {
		t.Errorf("at most %s USD were sent since a proof and %d processes sent anything: that tries nothing", usd(most), entered)
	}
	t.Logf("at most %s of 200 USD were sent since the newest proof; %d processes sent", usd(most), entered)
}

// The worst that can happen: some processes cannot read that others come, which prove for themselves and send, and from then on nobody proves anything. Those
// that come have to wait for the others, and those that cannot read anything have to stop.
func TestFleet_WhoComesUnseenSendsNothingBesideTheOthers(t *testing.T) {
	t.Parallel()
	entered, silences := 0, 0
	for seed := range uint64(20) {
		s := newSim(t, seed)
		for range 1 + s.dice.IntN(2) {
			s.start(0)
		}
		begin := s.now
		for s.now.Sub(begin) < 4*time.Second { // each has proved by now what the fleet of today permits
			s.now = s.now.Add(simStep)
			s.step(seed)
		}
		for _, r := range s.all {
			r.stalled = s.now.Add(2*time.Second + s.upTo(15*time.Second))
		}
		for len(s.all) < simMost {
			s.start(0).trap = true
		}
		for s.now.Sub(begin) < 20*time.Second {
			s.now = s.now.Add(simStep)
			s.step(seed)
		}
		entered += s.entered
		if !s.silent.IsZero() {
			silences++
		}
	}
	if silences < 20 || entered < 60 {
		t.Errorf("the authority fell silent %d times, and %d processes sent anything: that tries nothing", silences, entered)
	}
}

// A process that comes waits until every other one has read the fleet with it, and proves for itself; one that comes alone waits for nobody.
func TestKeeper_Heard_WhoJoinsAdmitsNothingBeforeAllOthersKnowOfIt(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := start
	k := New(map[string]Check{chainA: nil}, Options{Self: self, Own: own, Now: func() time.Time { return now }})
	reading := func(others ...time.Duration) {
		r := Reading{Sent: now, At: now, Members: []Member{{ID: self, Beat: now, Terms: own}}}
		for i, beat := range others {
			r.Members = append(r.Members, Member{ID: uuid.UUID{byte(i + 2)}, Beat: start.Add(beat), Terms: own})
		}
		k.Heard(r)
		k.Beat(now)
	}
	prove := func() { k.takeIn(k.networks[chainA], Finding{}, now) }
	reading(-time.Second, -2*time.Second)
	prove()
	wantCause(t, "it has come", k.Ready(chainA), CauseJoining)
	now = start.Add(time.Second)
	reading(joinMargin, joinMargin-1)
	prove()
	wantCause(t, "one may not have seen it", k.Ready(chainA), CauseJoining)
	now = start.Add(1500 * time.Millisecond)
	reading(joinMargin, joinMargin)
	wantCause(t, "what it proved before does not count", k.Ready(chainA), CauseNeverVerified)
	k.takeIn(k.networks[chainA], Finding{}, now.Add(-1))
	wantCause(t, "nor does a look that began before", k.Ready(chainA), CauseNeverVerified)
	prove()
	wantCause(t, "it has proved for itself", k.Ready(chainA), 0)

	now = now.Add(AliveFor - 1)
	reading(4 * time.Second)
	prove()
	wantCause(t, "it was not dead to the others", k.Ready(chainA), 0)
	now = now.Add(AliveFor)
	reading(7 * time.Second)
	wantCause(t, "it may have been", k.Ready(chainA), CauseJoining)
	now = now.Add(AliveFor - 1)
	reading()
	prove()
	wantCause(t, "the others are gone", k.Ready(chainA), 0)
}

// An allowance that grows because a process left is for what is proved after that; one that shrinks counts at once.
func TestKeeper_Heard_WhoLeavesEnlargesOnlyWhatIsProvedAfterwards(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := New(map[string]Check{chainA: nil}, Options{Self: self, Own: own, Now: func() time.Time { return now }})
	reading := func(others int) {
		r := Reading{Sent: now, At: now, Members: []Member{{ID: self, Beat: now, Terms: own}}}
		for i := range others {
			r.Members = append(r.Members, Member{ID: uuid.UUID{byte(i + 2)}, Beat: now, Terms: own})
		}
		k.Heard(r)
		k.Beat(now)
	}
	allows := func(when string, want time.Duration) {
		t.Helper()
		if got := k.Standing(chainA).Allowance; got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	reading(0)
	k.takeIn(k.networks[chainA], Finding{}, now)
	allows("alone", 9*time.Second)
	now = now.Add(time.Second)
	reading(1)
	allows("one has come", 4*time.Second)
	now = now.Add(time.Second)
	reading(0)
	allows("it has left, and what was proved before is older", 4*time.Second)
	k.takeIn(k.networks[chainA], Finding{}, now.Add(-1))
	allows("a look that began before it was known to have left", 4*time.Second)
	now = now.Add(1)
	k.takeIn(k.networks[chainA], Finding{}, now)
	allows("a look that began after that", 9*time.Second)
}

// Where payments are believed before they are proved, a proof counts from the newest reading of what is unproved at most.
func TestKeeper_Heard_WhatIsUnprovedMakesTheAllowanceShorter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	k := New(map[string]Check{chainA: nil, chainB: nil}, Options{Self: self, Own: own, Now: func() time.Time { return now }})
	reading := func(unproved int64) {
		k.Heard(Reading{Sent: now, At: now, Members: []Member{{ID: self, Beat: now, Terms: own}}, Unproved: map[string]int64{chainA: unproved}})
		k.Beat(now)
	}
	reading(100 * dollar)
	now = now.Add(time.Second)
	for _, network := range k.Networks() {
		k.takeIn(k.networks[network], Finding{}, now)
	}
	a, b := k.Standing(chainA), k.Standing(chainB)
	if a.Allowance != 4*time.Second || a.Settle.Age != time.Second || b.Allowance != 9*time.Second || b.Settle.Age != 0 {
		t.Errorf("with words %+v, without %+v; want 4 s from the reading on, and 9 s from the proof on", a, b)
	}
	reading(180 * dollar)
	wantCause(t, "nothing is left to lose", k.Ready(chainA), CauseTooOld)
	wantCause(t, "on the other network", k.Ready(chainB), 0)
	if got := k.Words(); got != 120*dollar {
		t.Errorf("%s USD may be unproved, want 120: 200 less 20 at once and three seconds of 20", usd(got))
	}
}
