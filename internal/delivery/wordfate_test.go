package delivery

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/postgres/pgtest"
)

// A fakeChain has a transfer from a depth of one on. What it says of it, of the nonce and of the time is the test's.
type fakeChain struct {
	used, lapsed bool
	depth        int
}

func (f *fakeChain) BlockTime(context.Context, uint64) (uint64, error) { return 0, nil }

func (f *fakeChain) FindSettlementTo(context.Context, chain.Expect, uint64, uint64) (chain.Proof, bool, error) {
	return chain.Proof{Transaction: common.Hash{9}, BlockNumber: 9, BlockHash: common.Hash{9}}, f.depth > 0, nil
}

func (f *fakeChain) Locate(ctx context.Context, want chain.Expect, _ common.Hash) (chain.Proof, int, bool, error) {
	proof, found, err := f.FindSettlementTo(ctx, want, 0, 0)
	return proof, f.depth, found, err
}

func (f *fakeChain) LapsedAt(context.Context, common.Address, common.Address, common.Hash, uint64, int) (bool, error) {
	return f.lapsed, nil
}

func (f *fakeChain) UsedAt(context.Context, common.Address, common.Address, common.Hash, int) (bool, uint64, error) {
	return f.used, 9, nil
}

// A sender counts what is sent again, and leaves it unclear.
type sender struct{ sent int }

func (s *sender) Settle(context.Context, chain.Signed) chain.Settlement {
	s.sent++
	return chain.Settlement{Status: chain.StatusUnknown}
}

// sweeping is a path over a shelf that is told what a chain says, and what the operator hears.
func (s shelf) sweeping(says *fakeChain, to Settler) (p *Path, rail Rail, told *[]string) {
	told = &[]string{}
	p = NewPath(Config{DB: s.db, Ready: lending(1), Recorder: s.recorder, OnError: func(err error) { *told = append(*told, err.Error()) }})
	return p, Rail{Network: chain.Network{ID: network, Confirmations: 2, ServeAtDepth: 1}, Chain: says, Settler: to}, told
}

const paymentStateSQL = `SELECT payment_state FROM calls WHERE id = $1`

func (s shelf) paymentState(t *testing.T, id call.ID) (state string) {
	t.Helper()
	if err := s.db.QueryRow(t.Context(), paymentStateSQL, id).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// believedAgo returns a served call whose payment was believed so long ago.
func (s shelf) believedAgo(t *testing.T, ago time.Duration) openCall {
	t.Helper()
	d := s.mustOnWord(t, "hosted")
	s.record(t, d.served())
	pgtest.Shift(t, s.db, ago-lookMax) // open waits for lookMax
	return s.open(t, d.Call)
}

func TestSendAgain_AWordHasTimeToComeTrue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		chain fakeChain
		ago   time.Duration
		sent  int
		state string
	}{
		"nothing is there, just before it is over":  {fakeChain{}, wordPatience - time.Microsecond, 0, paymentSent},
		"nothing is there, and it is over":          {fakeChain{}, wordPatience, 1, paymentSent},
		"the nonce is used, just before it is over": {fakeChain{used: true}, wordPatience - time.Microsecond, 0, paymentSent},
		"the nonce is used, at the first look":      {fakeChain{used: true}, wordPatience, 0, paymentSent},
		"its authorization has lapsed":              {fakeChain{lapsed: true}, lookMax, 0, paymentLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, to := newShelf(t), &sender{}
			c := s.believedAgo(t, tt.ago)
			p, rail, told := s.sweeping(&tt.chain, to)
			err := p.sendAgain(t.Context(), rail, c)
			if got := s.paymentState(t, c.ID); got != tt.state || to.sent != tt.sent || (err != nil) != (tt.sent > 0) {
				t.Errorf("the payment is %s, was sent %d times, %v; want %s, %d times", got, to.sent, err, tt.state, tt.sent)
			}
			// Where money is not coming the operator hears whose word it was.
			text := strings.Join(*told, "\n")
			if lost := tt.state == paymentLost; lost != strings.Contains(text, "facilitator hosted said that transaction "+c.Sent.Hex()) || lost && len(*told) != 1 {
				t.Errorf("the operator hears %q", text)
			}
		})
	}
}

// B123: an index of logs may lag behind the state, so a nonce has to look used for a while, and what is written off is written off for good.
func TestSendAgain_ANonceThatLooksUsedIsLookedAtTwice(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.believedAgo(t, wordPatience)
	says := &fakeChain{used: true}
	p, rail, _ := s.sweeping(says, &sender{})
	look := func(after time.Duration, want string) {
		t.Helper()
		pgtest.Shift(t, s.db, after)
		if err := s.db.QueryRow(t.Context(), `SELECT coalesce(market_now() - used_since, '0') FROM calls WHERE id = $1`, c.ID).Scan(&c.UsedFor); err != nil {
			t.Fatal(err)
		}
		if err := p.sendAgain(t.Context(), rail, c); err != nil || s.paymentState(t, c.ID) != want {
			t.Errorf("the payment is %s, %v; want %s", s.paymentState(t, c.ID), err, want)
		}
	}
	look(0, paymentSent)
	look(surelyUsed-time.Microsecond, paymentSent)
	says.used = false // what used it is gone with its block
	look(time.Microsecond, paymentSent)
	says.used = true
	look(0, paymentSent)
	look(surelyUsed-time.Microsecond, paymentSent)
	look(time.Microsecond, paymentLost)
}

// A payment is no better proved because it was believed: it has to stand as deep as any other, and is not sent again meanwhile.
func TestSendAgain_AWordIsProvedAtTheDepthOfEveryPayment(t *testing.T) {
	t.Parallel()
	s, to := newShelf(t), &sender{}
	c := s.believedAgo(t, wordPatience)
	says := &fakeChain{used: true}
	p, rail, _ := s.sweeping(says, to)
	rail.Network.ServeAtDepth = 3
	for depth, want := range []string{1: paymentSent, 2: paymentSent, 3: paymentMined} {
		if depth == 0 {
			continue
		}
		says.depth = depth
		if err := p.sendAgain(t.Context(), rail, c); err != nil || s.paymentState(t, c.ID) != want || to.sent != 0 {
			t.Errorf("at a depth of %d: the payment is %s, sent %d times, %v; want %s", depth, s.paymentState(t, c.ID), to.sent, err, want)
		}
	}
}

// Of many words that do not come true a few are sent again at once, and the others are not waited for.
func TestSendAgain_AFewAtATime(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.believedAgo(t, wordPatience)
	to := &sender{}
	p, rail, _ := s.sweeping(&fakeChain{}, to)
	for range wordResends {
		p.resends <- struct{}{}
	}
	if err := p.sendAgain(t.Context(), rail, c); err != nil || to.sent != 0 {
		t.Errorf("sent %d times, %v; want it left for a later look", to.sent, err)
	}
	<-p.resends
	if err := p.sendAgain(t.Context(), rail, c); err == nil || to.sent != 1 || len(p.resends) != wordResends-1 {
		t.Errorf("sent %d times, %v, %d places are taken; want it sent, and its place free again", to.sent, err, len(p.resends))
	}
}

// Each of many payments is looked at every few seconds: what is wrong is said once, and again only after it was right.
func TestSendAgain_WhoseWordsDoNotComeTrueIsSaidOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.believedAgo(t, wordPatience)
	says, to := &fakeChain{}, &sender{}
	p, rail, _ := s.sweeping(says, to)
	look := func(when string, depth int, of string, want bool) {
		t.Helper()
		says.depth = depth
		looked := c
		looked.Word = of
		if err := p.sendAgain(t.Context(), rail, looked); (err != nil) != want {
			t.Errorf("%s: %v, want that something is said: %v", when, err, want)
		}
	}
	look("the first", 0, "hosted", true)
	look("the second", 0, "hosted", false)
	look("another facilitator's", 0, "other", true)
	look("one that came true", 1, "hosted", false)
	look("the first after that", 0, "hosted", true)
	if to.sent != 4 {
		t.Errorf("sent %d times, want every one that is not there", to.sent)
	}
}

// Two replicas that look at one payment write it off once, and tell the operator once.
func TestLose_AWordIsWrittenOffOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	c := s.believedAgo(t, lookMax)
	p, _, told := s.sweeping(&fakeChain{}, &sender{})
	for range 2 {
		if err := p.lose(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if len(*told) != 1 {
		t.Errorf("the operator hears %q", *told)
	}
	d := s.mustOnWord(t, "other") // proved meanwhile by another replica
	stale := s.open(t, d.Call)
	s.prove(t, d.Call)
	if err := p.lose(t.Context(), stale); err != nil || s.paymentState(t, d.Call) != paymentMined || len(*told) != 1 {
		t.Errorf("what is proved is %s, %v; the operator hears %q", s.paymentState(t, d.Call), err, *told)
	}
}
