package refund

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"market/internal/chain"
	"market/internal/postgres/pgtest"
	"market/internal/source"
)

// A purse is what a test says of the units of a network.
type purse struct {
	limit    *source.LimitError // nil: it takes work
	late     *source.LimitError // that only a reservation meets
	guard    *source.LimitError // of our own: it is no limit for what has its unit
	reserved int
	ended    int
	asides   []string // what refunds had set aside
	unshown  bool     // nothing leaves us
}

func (p *purse) Limited(unitOf string) error {
	if p.guard != nil && unitOf != p.guard.Source {
		return p.guard
	}
	if p.limit == nil {
		return nil
	}
	return p.limit
}

func (p *purse) Reserve(_ context.Context, unitOf string) (Reservation, error) {
	if p.late != nil {
		return nil, p.late
	}
	p.reserved++
	p.asides = append(p.asides, unitOf)
	return &coin{p, unitOf != ""}, nil
}

type coin struct {
	*purse
	aside bool
}

type coinKey struct{}

func (c *coin) In(ctx context.Context) context.Context { return context.WithValue(ctx, coinKey{}, c) }
func (c *coin) UsesSetAside() bool                     { return c.aside }
func (c *coin) Shown() bool                            { return !c.unshown }
func (c *coin) End()                                   { c.ended++ }

func (f *fakeChain) counted(t *testing.T, s shelf, p *purse) *Worker {
	t.Helper()
	return NewWorker(s.db, map[string]Rail{network.ID: {Network: network, Node: f, Sender: f, Units: p, Treasuries: Treasuries(treasury(t))}})
}

func (s shelf) limit(until time.Duration) *source.LimitError {
	return &source.LimitError{Source: "facilitator/hosted", Why: source.Exhausted, Until: s.opened.Add(until), Wait: until}
}

// The unit that was set aside with the payment is crossed out before it is used, and what is not used is given back.
func TestWorker_UsesTheUnitThatWasSetAsideOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f, p := Derive(s.payment(t)), newFakeChain(), &purse{}
	o.UnitOf = "facilitator/hosted"
	if err := (Store{}).Owe(t.Context(), s.db, o); err != nil {
		t.Fatal(err)
	}
	f.settle = func(ctx context.Context, sent chain.Signed) chain.Settlement {
		if r, _ := s.find(t, o); r.UnitOf != "" || ctx.Value(coinKey{}) == nil {
			t.Errorf("while it is sent the unit of %q is set aside, and the reservation goes along: %v", r.UnitOf, ctx.Value(coinKey{}) != nil)
		}
		return unclear(ctx, sent)
	}
	w := f.counted(t, s, p)
	mustRun(t, w, o)
	mustRun(t, w, o)
	if len(p.asides) != 2 || p.asides[0] != "facilitator/hosted" || p.asides[1] != "" || p.ended != p.reserved {
		t.Errorf("reserved %+v, want the unit once and then another, each ended", p)
	}
}

// An attempt that showed nothing to anybody has used nothing: its unit is there for the next one, also where the job is ended meanwhile.
func TestWorker_AnAttemptThatWasNotShownKeepsTheUnitThatWasSetAside(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f, p := Derive(s.payment(t)), newFakeChain(), &purse{unshown: true}
	o.UnitOf = "facilitator/hosted"
	if err := (Store{}).Owe(t.Context(), s.db, o); err != nil {
		t.Fatal(err)
	}
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusReleased, Err: errNode}
	}
	w := f.counted(t, s, p)
	for range 2 {
		if err := run(t, w, o); !errors.Is(err, errNode) {
			t.Fatal(err)
		}
	}
	p.unshown, f.settle = false, nil
	mustRun(t, w, o)
	if len(p.asides) != 3 || p.asides[1] != o.UnitOf || p.asides[2] != o.UnitOf {
		t.Errorf("of three attempts the unit was there for %q, want all", p.asides)
	}
	if r, _ := s.find(t, o); r.UnitOf != "" {
		t.Errorf("after it was shown the unit of %q is still set aside", r.UnitOf)
	}
}

// An outage defers and never fails: one refund finds it out, everything that waits for the same is moved with it, and what needs nobody goes on.
func TestWorker_WhatWaitsForASourceIsPutOffTogether(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(p *purse, limit *source.LimitError){
		"it is known":                  func(p *purse, limit *source.LimitError) { p.limit = limit },
		"the reservation finds it out": func(p *purse, limit *source.LimitError) { p.late = limit },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			f, p := newFakeChain(), &purse{}
			w := f.counted(t, s, p)
			sent := s.owe(t)
			mustRun(t, w, sent) // and waits for its depth
			waiting := []Owed{s.owe(t), s.owe(t), s.owe(t)}
			f.used = false
			meet(p, s.limit(time.Hour))

			mustRun(t, w, waiting[0])
			for _, o := range waiting {
				wantRefund(t, s, o, "out", map[bool]State{true: StateSent, false: StateOwed}[p.late != nil && o == waiting[0]], time.Hour, 0)
				if r, _ := s.find(t, o); r.WaitsFor != "facilitator/hosted" || !r.Waiting {
					t.Errorf("it waits for %q, waiting %v", r.WaitsFor, r.Waiting)
				}
			}
			reads := f.reads
			mustRun(t, w, waiting[1]) // a job that was queued before
			if f.reads != reads {
				t.Error("a refund that was put off is worked on")
			}
			f.used, f.refund = true, network.Confirmations
			mustRun(t, w, sent)
			if r, _ := s.find(t, sent); r.State != StateConfirmed {
				t.Errorf("what was sent before is %s, want it confirmed", r.State)
			}
			if n, err := (Store{}).Waiting(t.Context(), s.db, []string{network.ID}); err != nil || n != 3 {
				t.Errorf("%d wait, %v; want 3", n, err)
			}

			// The source works again before its time. Others have nothing to do with that.
			for _, other := range [][2]string{{"eip155:1", "facilitator/hosted"}, {network.ID, "facilitator/other"}} {
				if err := (Store{}).Resume(t.Context(), s.db, []string{other[0]}, []string{other[1]}); err != nil || len(s.takeDue(t, 10)) != 0 {
					t.Fatalf("resumed by %v: %v", other, err)
				}
			}
			if err := (Store{}).Resume(t.Context(), s.db, []string{network.ID}, []string{"facilitator/other", "facilitator/hosted"}); err != nil {
				t.Fatal(err)
			}
			if due := s.takeDue(t, 10); len(due) != 3 {
				t.Errorf("%d are due, want 3", len(due))
			}
		})
	}
}

// Our own guard holds up what has no unit: a refund whose unit was set aside with its payment is neither moved nor kept from being sent.
func TestWorker_OurOwnGuardMovesNoRefundWhoseUnitIsSetAside(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f, p := newFakeChain(), &purse{guard: s.limit(12 * time.Hour)}
	p.guard.Why = source.Guarded
	aside := Derive(s.payment(t))
	aside.UnitOf = p.guard.Source
	if err := (Store{}).Owe(t.Context(), s.db, aside); err != nil {
		t.Fatal(err)
	}
	bare, other := s.owe(t), s.owe(t)
	w := f.counted(t, s, p)
	mustRun(t, w, bare)
	wantRefund(t, s, bare, "it has no unit", StateOwed, 12*time.Hour, 0)
	wantRefund(t, s, other, "it has none either", StateOwed, 12*time.Hour, 0)
	if r, wait := s.find(t, aside); r.WaitsFor != "" || wait >= time.Hour {
		t.Errorf("with its unit set aside it waits for %q, %s", r.WaitsFor, wait)
	}
	mustRun(t, w, aside)
	if len(f.sent) != 1 {
		t.Errorf("%d sent, want the one whose unit is set aside", len(f.sent))
	}
}

// Whoever was shown a refund may put it on the chain for as long as its signature lives, whatever it has answered: it is looked for meanwhile.
func TestWorker_WhatWasShownIsLookedForWhileItsSignatureLives(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f, p := s.owe(t), newFakeChain(), &purse{}
	f.head.Time = uint64(s.opened.Unix()) //nolint:gosec // of this century
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusUnknown, Err: errors.Join(s.limit(time.Hour), errNode)}
	}
	w := f.counted(t, s, p)
	mustRun(t, w, o)
	wantRefund(t, s, o, "it was shown", StateSent, time.Minute, 0)
	p.limit = s.limit(time.Hour)
	pgtest.Shift(t, s.db, 30*time.Second)
	mustRun(t, w, s.owe(t)) // it finds the source out
	wantRefund(t, s, o, "another one waits", StateSent, 30*time.Second, 0)
	pgtest.Shift(t, s.db, 30*time.Second)
	if due := s.takeDue(t, 10); len(due) != 1 || len(f.sent) != 1 {
		t.Fatalf("%d are due, %d sent; want one to be looked for, and nothing sent again", len(due), len(f.sent))
	}
	mustRun(t, w, o)
	wantRefund(t, s, o, "it is not there", StateSent, time.Minute, 0)
	pgtest.Shift(t, s.db, 10*time.Minute)
	s.takeDue(t, 10)
	mustRun(t, w, o)
	wantRefund(t, s, o, "its signature has lapsed", StateSent, time.Hour-11*time.Minute, 0)
	f.used, f.paid, f.refund = true, &f.sent[0], network.Confirmations
	pgtest.Shift(t, s.db, time.Hour)
	s.takeDue(t, 10)
	mustRun(t, w, o)
	if r, _ := s.find(t, o); r.State != StateConfirmed {
		t.Errorf("it is %s, want it found", r.State)
	}
}

// It is due when its source may be asked again, also where nobody has told.
func TestWorker_WhatWaitsIsDueExactlyWhenItsSourceIs(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f, p := newFakeChain(), &purse{limit: s.limit(time.Hour)}
	o := s.owe(t)
	mustRun(t, f.counted(t, s, p), o)
	pgtest.Shift(t, s.db, time.Hour-time.Millisecond)
	if due := s.takeDue(t, 10); len(due) != 0 {
		t.Fatal("it is due before its source is")
	}
	pgtest.Shift(t, s.db, time.Millisecond)
	if due := s.takeDue(t, 10); len(due) != 1 {
		t.Fatal("it is not due when its source is")
	}
	p.limit = nil
	mustRun(t, f.counted(t, s, p), o) // it was handed out, and waits for nothing
	if len(f.sent) != 1 {
		t.Errorf("%d sent, want 1", len(f.sent))
	}
}

// A send that its facilitator refused is no attempt of ours that failed.
func TestWorker_ASendThatWasRefusedForItsSourceKeepsTheAttempts(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f, p := s.owe(t), newFakeChain(), &purse{}
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusUnknown, Why: "unexpected_settle_error", Err: errors.Join(s.limit(time.Hour), errNode)}
	}
	mustRun(t, f.counted(t, s, p), o)
	wantRefund(t, s, o, "refused", StateSent, time.Hour, 0)
}

// A facilitator that only ever asks for a moment: one refund must not spend a unit a second on it. Where nobody was asked, the moment is waited for.
func TestWorker_ARefundThatWasShownAndAskedToWaitBacksOff(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	o, f, p := s.owe(t), newFakeChain(), &purse{}
	pace := s.limit(3 * time.Second)
	pace.Why = source.Paced
	f.settle = func(context.Context, chain.Signed) chain.Settlement {
		return chain.Settlement{Status: chain.StatusUnknown, Why: "unexpected_settle_error", Err: errors.Join(pace, errNode)}
	}
	w := f.counted(t, s, p)
	for n, want := range []time.Duration{3 * time.Second, 3 * time.Second, 4 * time.Second, 8 * time.Second} {
		if err := run(t, w, o); err == nil {
			t.Error("nothing is logged of it")
		}
		wantRefund(t, s, o, "asked to wait", StateSent, want, n+1)
		if r, _ := s.find(t, o); r.WaitsFor != "" {
			t.Fatalf("it waits for %q", r.WaitsFor)
		}
	}
	p.late = pace
	mustRun(t, w, o)
	wantRefund(t, s, o, "a pace that was met before", StateSent, 3*time.Second, 4)
	if r, _ := s.find(t, o); r.WaitsFor != pace.Source {
		t.Errorf("it waits for %q, want the source", r.WaitsFor)
	}
}

// Two that find it out at once do not wait for each other.
func TestWorker_ManyThatAreRefusedAtOnceAllEndPutOff(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	f := newFakeChain()
	var owed []Owed
	for range 16 {
		owed = append(owed, s.owe(t))
	}
	var wg sync.WaitGroup
	for _, o := range owed {
		w := f.counted(t, s, &purse{limit: s.limit(time.Hour)})
		wg.Go(func() {
			if err := run(t, w, o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, o := range owed {
		wantRefund(t, s, o, "out", StateOwed, time.Hour, 0)
	}
}
