package facilitator

import (
	"context"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// later is the teller as one whose word may be believed.
func (d *teller) later(t *testing.T) Link {
	t.Helper()
	l := d.link(t)
	l.Later = true
	return l
}

// A word is offered where its giver has proof later, where whoever settles asks for words, and where it is a yes; in every other case it is proved
// first, as it is where it is offered and not believed.
func TestFailover_SettleOnWord_OffersAYesAndNothingElse(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	engine := g.engine(t, g.node, nil)
	// A transaction that paid something else: our node says so at once.
	other := g.settle(t, engine, g.authorize(t, 10, nil)).Proof.Transaction
	invents := func(s chain.Signed) says { return says{200, yes(s, other), "", nil} }
	mines := func(s chain.Signed) says {
		return gives(yes(s, other), func() common.Hash { return g.settle(t, engine, s).Transaction })
	}
	pending := func(chain.Signed) says {
		body := no("settlement_pending")
		body["transaction"] = other.Hex()
		return says{200, body, "", nil}
	}
	for name, tt := range map[string]struct {
		answer   func(chain.Signed) says
		receipt  bool // the link's proof
		believes bool
		offered  int
		status   chain.Status
	}{
		"a yes that is believed":               {invents, false, true, 1, chain.StatusSaid},
		"a yes that is not, and nothing there": {invents, false, false, 1, chain.StatusUnknown},
		"a yes that is not, and it is there":   {mines, false, false, 1, chain.StatusSettled},
		"a yes of who has to prove":            {invents, true, true, 0, chain.StatusUnknown},
		"pending":                              {pending, false, true, 0, chain.StatusUnknown},
		"a no":                                 {func(chain.Signed) says { return says{200, no("oops"), "", nil} }, false, true, 0, chain.StatusUnknown},
		"a yes without a transaction":          {func(s chain.Signed) says { return says{200, yes(s, common.Hash{}), "", nil} }, false, true, 0, chain.StatusUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := g.authorize(t, 10, nil)
			d := newTeller(t, tt.answer(s))
			link := d.later(t)
			link.Later = !tt.receipt
			f := g.failover(link)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			offered := 0
			got := f.SettleOnWord(ctx, s, func(_ context.Context, w chain.Word) bool {
				if offered++; w.Of != "teller" || w.Transaction == (common.Hash{}) {
					t.Errorf("the word is %+v", w)
				}
				return tt.believes
			})
			if got.Status != tt.status || offered != tt.offered || d.asked.Load() != 1 {
				t.Errorf("%+v, offered %d times, asked %d times; want status %d, %d times, once", got, offered, d.asked.Load(), tt.status, tt.offered)
			}
			if got.Status == chain.StatusSaid && (got.Transaction != other || got.Proof != chain.Proof{}) {
				t.Errorf("said %+v, want transaction %s and no proof", got, other)
			}
			if f.Believable() == tt.receipt {
				t.Errorf("believable %v", f.Believable())
			}
		})
	}
}

// Refunds, and payments that are sent again, are settled without a word.
func TestFailover_Settle_TakesNobodysWord(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	other := g.settle(t, g.engine(t, g.node, nil), g.authorize(t, 10, nil)).Proof.Transaction
	s := g.authorize(t, 10, nil)
	d := newTeller(t, says{200, yes(s, other), "", nil})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if got := g.failover(d.later(t)).Settle(ctx, s); got.Status != chain.StatusUnknown || d.asked.Load() != 1 {
		t.Errorf("%+v, asked %d times; want unknown, once", got, d.asked.Load())
	}
}
