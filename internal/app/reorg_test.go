package app_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/chain"
)

// deep is at which depth a transfer is final here: far from the one block after which a call is served.
const deep = 12

// A shallow world serves at depth 1, and its chain may take blocks back.
type shallow struct {
	*apptest.World
	facilitator *faulty
	service     *apptest.Service
	ask         apptest.Asking
	payer       chain.Key
}

func newShallow(t *testing.T, how fault, work http.HandlerFunc) *shallow {
	t.Helper()
	f, option := newFaulty(t, how)
	w := apptest.StartWith(t, apptest.Setup{Burst: 900, Confirmations: deep, Options: []app.Option{option}})
	s := w.List(t, "shallow", work, nil)
	return &shallow{World: w, facilitator: f, service: s, ask: apptest.Ask(s.URL), payer: w.Payer(t, apptest.PriceUnits)}
}

func (s *shallow) call(t *testing.T) (header string, a apptest.Answer) {
	t.Helper()
	header = s.Sign(t, s.payer, s.Challenge(t, s.ask))
	return header, s.Send(t, s.ask, header)
}

// paymentBlock is where the one payment stands.
func (s *shallow) paymentBlock(t *testing.T) uint64 {
	t.Helper()
	in, _ := s.Transfers(t, s.Treasury)
	if len(in) != 1 {
		t.Fatalf("the chain has the payments %v, want one", in)
	}
	return in[0].Block
}

// takeBack drops the payment; what comes again of it is undone until the payer is unblocked.
func (s *shallow) takeBack(t *testing.T) {
	t.Helper()
	if err := s.Chain.ReorgAgainst(t.Context(), s.paymentBlock(t), s.payer.Address()); err != nil {
		t.Fatal(err)
	}
}

func (s *shallow) unblock(t *testing.T) {
	t.Helper()
	if err := s.Chain.SetBlocked(t.Context(), s.payer.Address(), false); err != nil {
		t.Fatal(err)
	}
}

// mine brings depth, or lets an authorization lapse, and then has everything looked at.
func (s *shallow) mine(t *testing.T, blocks uint64) {
	t.Helper()
	if err := s.Chain.Mine(t.Context(), blocks); err != nil {
		t.Fatal(err)
	}
	s.Shift(t, time.Minute)
}

const placeSQL = `SELECT transaction, block_number FROM calls WHERE id = $1`

// wantPlace checks that the books name the transaction and the block in which the payment stands.
func (s *shallow) wantPlace(t *testing.T, id string) {
	t.Helper()
	var (
		transaction []byte
		block       uint64
	)
	if err := s.DB.QueryRow(t.Context(), placeSQL, id).Scan(&transaction, &block); err != nil {
		t.Fatal(err)
	}
	in, _ := s.Transfers(t, s.Treasury)
	if len(in) != 1 || in[0].Block != block || in[0].Transaction != common.BytesToHash(transaction) {
		t.Errorf("the books have the payment in block %d, the chain has %+v", block, in)
	}
}

func TestReorg_AServedPaymentThatDropsOutComesBackByItself(t *testing.T) {
	t.Parallel()
	s := newShallow(t, honest, apptest.Works)
	_, a := s.call(t)
	if a.Status != http.StatusOK {
		t.Fatalf("the call: %d %s", a.Status, a.Body)
	}
	old := s.paymentBlock(t)
	if err := s.Chain.Reorg(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the payment is on the chain again", func() bool {
		in, _ := s.Transfers(t, s.Treasury)
		return len(in) == 1 && in[0].Block > old
	})
	s.mine(t, deep)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	s.wantPlace(t, a.Call())
	wantMoved(t, s.World, 1, 0)
	if s.service.Asked() != 1 {
		t.Errorf("the service was asked %d times, want once", s.service.Asked())
	}
}

// B88: books follow the chain.
func TestReorg_AServedPaymentGoesFromMinedToSentAndBack(t *testing.T) {
	t.Parallel()
	s := newShallow(t, honest, apptest.Works)
	_, a := s.call(t)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "mined", Outcome: "served", Reason: "ok"})
	s.takeBack(t)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "sent", Outcome: "served", Reason: "ok"})
	s.unblock(t)
	s.mine(t, deep) // what was undone is final, so another transaction may carry the payment
	apptest.Eventually(t, "the payment is on the chain again", func() bool {
		in, _ := s.Transfers(t, s.Treasury)
		return len(in) == 1
	})
	s.mine(t, deep)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	s.wantPlace(t, a.Call())
}

func TestReorg_AServedPaymentThatLapsesOffTheChainIsLostAndTheCallStaysServed(t *testing.T) {
	t.Parallel()
	s := newShallow(t, honest, apptest.Works)
	header, a := s.call(t)
	s.takeBack(t)
	s.mine(t, 150)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "lost", Outcome: "served", Reason: "ok"})
	s.unblock(t)
	wantMoved(t, s.World, 0, 0)
	if again := s.Send(t, s.ask, header); again.Call() != a.Call() || again.Status == http.StatusPaymentRequired || s.service.Asked() != 1 {
		t.Errorf("the same payment again: %d %s; the service was asked %d times", again.Status, again.Body, s.service.Asked())
	}
}

func TestReorg_NoRefundLeavesBeforeItsPaymentIsFinal(t *testing.T) {
	t.Parallel()
	s := newShallow(t, honest, apptest.Fails)
	_, a := s.call(t)
	expect(t, "the call", a, http.StatusBadGateway, "upstream_5xx")
	s.mine(t, deep/2)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "mined", Outcome: "failed", Reason: "upstream_5xx", Refund: "owed"})
	s.mine(t, deep)
	apptest.Eventually(t, "the refund has left", func() bool {
		_, out := s.Transfers(t, s.Treasury)
		return len(out) == 1
	})
	_, out := s.Transfers(t, s.Treasury)
	if paid := s.paymentBlock(t); out[0].Block < paid+deep-1 || out[0].To != s.payer.Address() || out[0].Units != apptest.PriceUnits {
		t.Errorf("the refund is %+v, the payment was in block %d and is final %d blocks later", out[0], paid, deep-1)
	}
	s.mine(t, deep)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "upstream_5xx", Refund: "confirmed"})
}

func TestReorg_ARefundOfAPaymentThatIsLostIsVoid(t *testing.T) {
	t.Parallel()
	s := newShallow(t, honest, apptest.Fails)
	_, a := s.call(t)
	s.takeBack(t)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "sent", Outcome: "failed", Reason: "upstream_5xx", Refund: "owed"})
	s.mine(t, 150)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "lost", Outcome: "failed", Reason: "upstream_5xx", Refund: "void"})
	s.unblock(t)
	wantMoved(t, s.World, 0, 0)
	if record := s.Record(t, a.Call()); record.Refund("state") != "void" {
		t.Errorf("the record says %s", record.Body)
	}
}

// The payment comes back in another transaction than the one whose refund was owed.
func TestReorg_ARefundFollowsItsPayment(t *testing.T) {
	t.Parallel()
	s := newShallow(t, honest, apptest.Fails)
	_, a := s.call(t)
	s.takeBack(t)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "sent", Outcome: "failed", Reason: "upstream_5xx", Refund: "owed"})
	s.unblock(t)
	s.mine(t, deep)
	apptest.Eventually(t, "the payment is on the chain again", func() bool {
		in, _ := s.Transfers(t, s.Treasury)
		return len(in) == 1
	})
	s.mine(t, deep)
	apptest.Eventually(t, "the refund has left", func() bool {
		_, out := s.Transfers(t, s.Treasury)
		return len(out) == 1
	})
	s.mine(t, deep)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "upstream_5xx", Refund: "confirmed"})
	wantMoved(t, s.World, 1, 1)
	if got := s.Balance(t, s.payer.Address()); got != apptest.PriceUnits {
		t.Errorf("the payer has %d units, want its price back once", got)
	}
}

// A call that waits for its caller is not served while its payment is off the chain.
func TestReorg_ASettledCallIsNotServedWhileItsPaymentIsGone(t *testing.T) {
	t.Parallel()
	s := newShallow(t, hasty, apptest.Works)
	header, a := s.call(t)
	wantPending(t, "the call", a)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "settled", Payment: "mined"})
	s.takeBack(t)
	wantPending(t, "a retry while the payment is gone", s.Send(t, s.ask, header))
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "settled", Payment: "sent"})
	s.Shift(t, time.Minute)
	wantPending(t, "a retry once that is known", s.Send(t, s.ask, header))
	s.mine(t, 150)
	s.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "lost", Outcome: "failed", Reason: "settlement_lost"})
	if again := s.Send(t, s.ask, header); again.Code() != "settlement_lost" || again.JSON["charged"] != false {
		t.Errorf("after that: %d %s", again.Status, again.Body)
	}
	wantMoved(t, s.World, 0, 0)
	if s.service.Asked() != 0 {
		t.Errorf("the service was asked %d times for money that was gone", s.service.Asked())
	}
}
