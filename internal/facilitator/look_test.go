package facilitator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"market/internal/chain"
	"market/internal/facilitator/remote"
	"market/internal/readiness"
	"market/internal/source"
)

// An oracle is a link that says of itself what the test has it say.
type oracle struct {
	name     string
	err      error
	validFor time.Duration
	limit    error
	others   bool // it was somebody else who settled
	hangs    bool
}

func (o *oracle) look(ctx context.Context) (time.Duration, error) {
	if o.hangs {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return o.validFor, o.err
}

func (o *oracle) limited() error              { return o.limit }
func (o *oracle) limitedFor(int) error        { return o.limit }
func (o *oracle) limitedToRefund(int64) error { return o.limit }
func (o *oracle) preferred(time.Time) bool    { return o.err == nil }
func (o *oracle) source() string              { return o.name }

func (o *oracle) reserve(context.Context, source.Class, int64) (*remote.Turn, error) { return nil, nil }

func (o *oracle) reserveCall(context.Context, int, int64) (*remote.Turn, error) { return nil, nil }

func (o *oracle) settle(context.Context, *remote.Turn, chain.Signed, int, chain.Believe) chain.Settlement {
	return chain.Settlement{Status: chain.StatusSettled, ByUs: !o.others}
}

var (
	errSlow = errors.New("no answer in time")
	errNo   = &readiness.Denied{Why: errors.New("it does not take us")}
	errOut  = &source.LimitError{Source: "facilitator/b", Why: source.Exhausted}
)

// oracles are two facilitators, and a clock that moves by a second with each look.
func oracles() (f *Failover, a, b *oracle) {
	a, b = &oracle{name: "a"}, &oracle{name: "b"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f = NewFailover(nil, nil, nil, func() time.Time { at = at.Add(time.Second); return at })
	f.links = []link{a, b}
	return f, a, b
}

// A word is what came of a look.
type word int

const (
	_       word = iota
	proved       // one can settle
	denied       // none can, and what was proved before is not to be used
	unclear      // nothing was said against what was proved before
)

func (w word) String() string { return [...]string{"no word", "proved", "denied", "unclear"}[w] }

func wordOf(err error) word {
	if err == nil {
		return proved
	}
	if _, no := errors.AsType[*readiness.Denied](err); no {
		return denied
	}
	return unclear
}

// One that works is enough. A definite no of one is that of a network only where nobody is left who has said nothing, and on whom the last proof rests.
func TestFailover_Look_ANoIsTheNetworksWhereNobodyIsLeft(t *testing.T) {
	t.Parallel()
	type step struct {
		a, b error
		want word
	}
	for name, steps := range map[string][]step{
		"one that works is enough":             {{nil, errNo, proved}, {errSlow, nil, proved}, {nil, errSlow, proved}, {errNo, nil, proved}},
		"both say no":                          {{errNo, errNo, denied}},
		"neither says anything":                {{errSlow, errSlow, unclear}},
		"nothing was ever proved":              {{errNo, errSlow, unclear}, {errSlow, errNo, unclear}},
		"both worked, both say nothing":        {{nil, nil, proved}, {errSlow, errSlow, unclear}},
		"both worked, both say no":             {{nil, nil, proved}, {errNo, errNo, denied}},
		"both worked, one has not said no":     {{nil, nil, proved}, {errNo, errSlow, unclear}, {errNo, errSlow, unclear}},
		"a no is not forgotten in a silence":   {{nil, nil, proved}, {errNo, errSlow, unclear}, {errSlow, errNo, denied}},
		"the proof rests on the other one":     {{nil, errSlow, proved}, {errSlow, errNo, unclear}, {errSlow, errSlow, unclear}},
		"the one that it rests on says no":     {{nil, errSlow, proved}, {errNo, errSlow, denied}},
		"what was proved long ago is no proof": {{errSlow, nil, proved}, {nil, errSlow, proved}, {errNo, errSlow, denied}},
		"after a no it may work again":         {{nil, nil, proved}, {errNo, errNo, denied}, {errSlow, errSlow, unclear}, {errSlow, nil, proved}},
	} {
		f, a, b := oracles()
		for i, s := range steps {
			a.err, b.err = s.a, s.b
			if _, err := f.Look(t.Context()); wordOf(err) != s.want {
				t.Errorf("%s, look %d: %s (%v), want %s", name, i+1, wordOf(err), err, s.want)
			}
		}
	}
}

// A settlement is a proof like a look, of whoever settled.
func TestFailover_Look_ASettlementIsAProofOfWhoSettled(t *testing.T) {
	t.Parallel()
	f, a, b := oracles()
	a.err = errSlow
	if _, err := f.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.err, b.err = nil, errSlow // the order of the configuration: a comes first
	if got := f.Settle(t.Context(), chain.Signed{}); got.Status != chain.StatusSettled {
		t.Fatalf("%+v", got)
	}
	a.err, b.err = errSlow, errNo
	if _, err := f.Look(t.Context()); wordOf(err) != unclear {
		t.Errorf("the one that did not settle says no: %v, want nothing said against the one that did", err)
	}
	a.err, b.err = errNo, errSlow
	if _, err := f.Look(t.Context()); wordOf(err) != denied {
		t.Errorf("the one that settled last says no: %v, want a no", err)
	}
}

// A payment that somebody else has put on the chain says nothing of who was asked to.
func TestFailover_Settle_WhatOthersSettledIsNoProof(t *testing.T) {
	t.Parallel()
	f, a, b := oracles()
	a.err, b.others = errSlow, true
	f.Settle(t.Context(), chain.Signed{}) // b comes first
	f.links = f.links[:1]
	a.err, a.others = nil, true
	f.Settle(t.Context(), chain.Signed{})
	if len(f.proved) != 0 {
		t.Errorf("proved %v, want nothing", f.proved)
	}
}

// One that hangs takes nothing of the time of who has answered.
func TestFailover_Look_OneThatHangsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, _, b := oracles()
		b.hangs = true
		began := time.Now()
		if _, err := f.Look(t.Context()); err != nil {
			t.Errorf("one works, and one hangs: %v", err)
		}
		if took := time.Since(began); took != lookGrace {
			t.Errorf("it took %s, want %s", took, lookGrace)
		}
		if len(f.proved) != 1 || !f.proved[b].IsZero() {
			t.Errorf("proved: %v, want the one that answered", f.proved)
		}
	})
}

// Who takes no work now proves nothing while another is asked; where none does, that is told from memory and to the second, so a look holds for afterwards.
func TestFailover_Look_WhoTakesNoWorkProvesNothingBesideOneThatCould(t *testing.T) {
	t.Parallel()
	f, a, b := oracles()
	b.limit = errOut
	for _, tt := range []struct {
		a    error
		want word
	}{{nil, proved}, {errSlow, unclear}, {errNo, denied}} {
		a.err = tt.a
		_, err := f.Look(t.Context())
		if wordOf(err) != tt.want {
			t.Errorf("%v of the other one: %v, want %s", tt.a, err, tt.want)
		}
		if _, typed := errors.AsType[*source.LimitError](err); typed {
			t.Errorf("%v: the limit of one is taken for that of all", err)
		}
	}
	a.limit = errOut
	if _, err := f.Look(t.Context()); err != nil || f.Limited() == nil {
		t.Errorf("both take no work: %v, limited %v", err, f.Limited())
	}
}

// A time for which an answer holds shortens nothing while somebody else can settle who gave none.
func TestFailover_Look_HoldsAsLongAsTheLongestWordOfThoseThatCan(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		a, b  time.Duration
		noOfB bool
		want  time.Duration
	}{
		"neither gave one":          {0, 0, false, 0},
		"one gave none":             {3 * time.Second, 0, false, 0},
		"both did":                  {3 * time.Second, 5 * time.Second, false, 5 * time.Second},
		"who gave none says no":     {3 * time.Second, 0, true, 3 * time.Second},
		"who gave the longer says":  {3 * time.Second, 5 * time.Second, true, 3 * time.Second},
		"who gave one is not heard": {0, 5 * time.Second, true, 0},
	} {
		f, a, b := oracles()
		a.validFor, b.validFor = tt.a, tt.b
		if tt.noOfB {
			b.err = errNo
		}
		if got, err := f.Look(t.Context()); got != tt.want || err != nil {
			t.Errorf("%s: %s, %v; want %s", name, got, err, tt.want)
		}
	}
}

// What our own engine finds is a no; what its node or its database does not say is none.
func TestEngine_Ready_ANoIsDefiniteAndSilenceIsNot(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	broke := g.engine(t, g.node, func(o *Options) { o.ReadySettlements = 1 << 40 })
	err := broke.Ready(t.Context())
	if _, empty := errors.AsType[*GasError](err); !empty || wordOf(err) != denied {
		t.Errorf("too little gas: %v, want a definite no", err)
	}
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if err := broke.Ready(away); wordOf(err) != unclear {
		t.Errorf("no answer: %v, want none that is definite", err)
	}
	g.db.Close()
	if err := g.engine(t, g.node, nil).Ready(t.Context()); wordOf(err) != unclear {
		t.Errorf("no database: %v, want none that is definite", err)
	}
}
