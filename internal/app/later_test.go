package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/app/apptest"
	"market/internal/delivery"
	"market/internal/payment"
)

// named is the transaction that a facilitator of these tests names: never the one that it makes, as where one is replaced by a dearer one.
func named(s apptest.Settling) common.Hash { return crypto.Keccak256Hash(s.Signed.Nonce[:]) }

// says yes, and does nothing.
func lies(s apptest.Settling) { s.Say(true, "", named(s)) }

// says yes, and settles afterwards.
func hurries(s apptest.Settling) {
	s.Behind()
	lies(s)
}

// A holder says yes, and settles once it is let go.
type holder struct{ free chan struct{} }

// newHolder returns one that is let go at the end of the test at the latest, before the facilitator that it is put into ends.
func newHolder(t *testing.T) *holder {
	h := &holder{make(chan struct{})}
	t.Cleanup(h.letGo)
	return h
}

func (h *holder) letGo() {
	select {
	case <-h.free:
	default:
		close(h.free)
	}
}

func (h *holder) settles(s apptest.Settling) {
	s.Late.Go(func() {
		<-h.free
		s.Engine.Settle(s.T.Context(), s.Signed)
	})
	lies(s)
}

// newLaterWorld has facilitators whose word counts until so many prices are unproved.
func newLaterWorld(t *testing.T, setup apptest.Setup, prices int, local bool, upstream http.HandlerFunc, all ...*apptest.Hosted) *hostedWorld {
	t.Helper()
	return newLaterFleet(t, setup, 1, prices, local, upstream, all...)
}

// newLaterFleet is the same for so many processes. Each takes four calls a second. What words leave of the budget is what all of them send at once and in
// three seconds.
func newLaterFleet(t *testing.T, setup apptest.Setup, processes, prices int, local bool, upstream http.HandlerFunc, all ...*apptest.Hosted) *hostedWorld {
	t.Helper()
	const aSecond = 4 // prices, which are 2 thousandths of a dollar each
	budget := 2 * (prices + 4*aSecond*processes)
	env := []string{apptest.FacilitatorsFile(t, map[string]any{"proof": "later"}, local, all...), fmt.Sprintf("MARKET_EXPOSURE_USD=%d.%03d", budget/1000, budget%1000),
		fmt.Sprintf("MARKET_ADMIT_USD_PER_SECOND=0.%03d", 2*aSecond)}
	return newHostedWorldWith(t, setup, env, local, upstream, all...)
}

var burst = apptest.Setup{Burst: 600}

// call pays for one call by a fresh payer, with an authorization that lives for a minute of the chain's time.
func (w *hostedWorld) call(t *testing.T) (header string, a apptest.Answer) {
	t.Helper()
	header = w.SignFor(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask), 60)
	return header, w.Send(t, w.ask, header)
}

// lapse lets every open authorization lapse, and has all calls looked at.
func (w *hostedWorld) lapse(t *testing.T) {
	t.Helper()
	if err := w.Chain.Mine(t.Context(), 70); err != nil {
		t.Fatal(err)
	}
	w.Shift(t, time.Minute)
}

// wantFigures checks our first promise, and what nobody has proved, in prices.
func (w *hostedWorld) wantFigures(t *testing.T, when string, paid, unproved, carried uint64) {
	t.Helper()
	figures, err := delivery.PromiseOne(t.Context(), w.DB)
	if err != nil {
		t.Fatal(err)
	}
	if len(figures) != 1 || !figures.Balanced() {
		t.Fatalf("%s: %v", when, figures)
	}
	f := figures[0]
	got := [3]uint64{f.Paid.Big().Uint64(), f.Unproved.Big().Uint64(), f.Carried.Big().Uint64()}
	if want := [3]uint64{paid * apptest.PriceUnits, unproved * apptest.PriceUnits, carried * apptest.PriceUnits}; got != want {
		t.Errorf("%s: paid, unproved, carried are %v, want %v", when, got, want)
	}
}

// words counts the calls that were gone on with on a word.
func (w *hostedWorld) words(t *testing.T) (n int) {
	t.Helper()
	if err := w.DB.QueryRow(t.Context(), `SELECT count(*) FROM calls WHERE word_of IS NOT NULL`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// newHeldWorld is a marketplace whose facilitator gives its word at once and settles when it is let go, and where so many prices may be unproved.
func newHeldWorld(t *testing.T, prices int, work http.HandlerFunc) (*hostedWorld, *apptest.Hosted, *holder) {
	t.Helper()
	h, hold := apptest.NewHosted(t, apptest.SupportsUs, nil), newHolder(t)
	h.Does(hold.settles)
	return newLaterWorld(t, burst, prices, false, work, h), h, hold
}

// A call is served before its payment is on the chain, everybody is told that nothing proves it, and the proof comes by itself.
func TestLater_ACallIsServedOnAWordAndProvedLater(t *testing.T) {
	t.Parallel()
	w, _, hold := newHeldWorld(t, 10, apptest.Works)
	header, a := w.call(t)
	response, err := payment.DecodeResponse(a.Header.Get("PAYMENT-RESPONSE"))
	if a.Status != http.StatusOK || a.Outcome() != "served" || err != nil || !response.Success || response.Transaction == "" {
		t.Fatalf("the call: %d %s, settlement %+v, %v", a.Status, a.Body, response, err)
	}
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "sent", Outcome: "served", Reason: "ok"})
	w.wantFigures(t, "before it is proved", 0, 1, 0)
	record := w.Record(t, a.Call())
	paid, _ := record.JSON["payment"].(map[string]any)
	if text, _ := paid["unproved"].(string); !strings.Contains(text, "hosted-a says that it was settled; our own node has not seen it yet") ||
		paid["transaction"] != response.Transaction || record.JSON["charged"] != "pending" || record.JSON["receipt"] != nil {
		t.Errorf("before it is proved the record says %s", record.Body)
	}
	page := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/calls/" + a.Call(), Header: http.Header{"Accept": {"text/html"}}}, "")
	if !strings.Contains(string(page.Body), "our own node has not seen it yet") {
		t.Errorf("the page does not say that nothing proves it: %s", page.Body)
	}
	if again := w.Send(t, w.ask, header); again.Status != http.StatusOK || again.Call() != a.Call() || string(again.Body) != string(a.Body) {
		t.Errorf("the same payment again: %d %s", again.Status, again.Body)
	}
	wantMoved(t, w.World, 0, 0)

	hold.letGo()
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "served", Payment: "final", Outcome: "served", Reason: "ok"})
	w.wantFigures(t, "once it is proved", 1, 0, 0)
	in, _ := w.Transfers(t, w.Treasury)
	record = w.Record(t, a.Call())
	paid, _ = record.JSON["payment"].(map[string]any)
	if len(in) != 1 || paid["transaction"] != in[0].Transaction.Hex() || paid["unproved"] != nil || record.JSON["charged"] != true || record.JSON["receipt"] == nil {
		t.Errorf("once it is proved the record says %s, the chain has %+v", record.Body, in)
	}
	if w.service.Asked() != 1 {
		t.Errorf("the service was asked %d times", w.service.Asked())
	}
}

// What does not fit into the bound is not refused: it is proved first, as ever.
func TestLater_WhatDoesNotFitIsProvedAndServed(t *testing.T) {
	t.Parallel()
	w, h, _ := newHeldWorld(t, 1, apptest.Works)
	_, first := w.call(t)
	h.Does(hurries)
	_, second := w.call(t)
	for name, a := range map[string]apptest.Answer{"on a word": first, "on a proof": second} {
		if a.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	w.wantFigures(t, "with one of each", 1, 1, 0)
	if n := w.words(t); n != 1 || w.Record(t, second.Call()).JSON["receipt"] == nil {
		t.Errorf("%d words are believed where one fits", n)
	}
	if a := w.Send(t, w.ask, ""); a.Status != http.StatusPaymentRequired {
		t.Errorf("while the bound is used up an unpaid request gets %d %s", a.Status, a.Body)
	}
}

// A facilitator that lies costs at most the bound, however many replicas believe it: what does not fit is proved first, and from its first word on
// that proves false, everything is.
func TestLater_ALiarCostsAtMostTheBound(t *testing.T) {
	t.Parallel()
	const fit, callers = 3, 8
	h := apptest.NewHosted(t, apptest.SupportsUs, nil)
	w := newLaterFleet(t, burst, 2, fit, false, apptest.Works, h)
	other := w.Replica(t)
	apptest.Eventually(t, "the other replica knows the service", func() bool {
		return w.Send(t, other.At(t, w.ask), "").Status == http.StatusPaymentRequired
	})
	// It names a transaction that paid something else, so whoever waits for the proof is told soon that there is none.
	someone := w.Payer(t, apptest.PriceUnits)
	minted, _ := w.Transfers(t, someone.Address())
	h.Does(func(s apptest.Settling) { s.Say(true, "", minted[0].Transaction) })
	terms := w.Challenge(t, w.ask)
	headers := make([]string, callers)
	for i := range headers {
		headers[i] = w.SignFor(t, w.Payer(t, apptest.PriceUnits), terms, 60)
	}
	var (
		wg      sync.WaitGroup
		answers [callers]apptest.Answer
	)
	for i, header := range headers {
		door := w.ask
		if i%2 == 1 {
			door = other.At(t, w.ask)
		}
		wg.Go(func() { answers[i] = w.Send(t, door, header) })
	}
	wg.Wait()
	served := 0
	for i, a := range answers {
		if a.Status == http.StatusOK {
			served++
			continue
		}
		wantPending(t, fmt.Sprint("caller ", i), a)
	}
	if served != fit || w.service.Asked() != fit {
		t.Errorf("%d callers were served and the service was asked %d times, want %d: what the bound allows", served, w.service.Asked(), fit)
	}
	w.wantFigures(t, "before any word has lapsed", 0, fit, 0)
	w.lapse(t)
	for _, a := range answers {
		want := apptest.Books{State: "refused", Outcome: "refused", Reason: "settle_failed"}
		if a.Status == http.StatusOK {
			want = apptest.Books{State: "served", Payment: "lost", Outcome: "served", Reason: "ok"}
		}
		w.AwaitBooks(t, a.Call(), want)
		if record := w.Record(t, a.Call()); record.JSON["charged"] != false || record.JSON["receipt"] != nil && a.Status == http.StatusOK {
			t.Errorf("the record of what never came says %s", record.Body)
		} else if paid, _ := record.JSON["payment"].(map[string]any); a.Status == http.StatusOK && !strings.Contains(fmt.Sprint(paid["unproved"]), "it never was") {
			t.Errorf("the record of what never came looks paid: %s", record.Body)
		}
	}
	w.wantFigures(t, "once all have lapsed", 0, 0, fit)

	// Nothing is unproved any more, and its word is worth nothing on any replica.
	h.Does(hurries)
	apptest.Eventually(t, "both doors ask for payments", func() bool {
		return w.Send(t, w.ask, "").Status == http.StatusPaymentRequired && w.Send(t, other.At(t, w.ask), "").Status == http.StatusPaymentRequired
	})
	for _, door := range []apptest.Asking{w.ask, other.At(t, w.ask)} {
		if a := w.Send(t, door, w.SignFor(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask), 60)); a.Status != http.StatusOK {
			t.Errorf("after its lies: %d %s", a.Status, a.Body)
		}
	}
	if n := w.words(t); n != fit {
		t.Errorf("%d calls were gone on with on its word, want %d", n, fit)
	}
	w.wantFigures(t, "after its lies", 2, 0, fit)
}

// The refund of a payment that nobody has proved is owed, waits for the proof, and is sent once: about the transaction that is on the chain.
func TestLater_ARefundWaitsForTheProof(t *testing.T) {
	t.Parallel()
	w, h, hold := newHeldWorld(t, 10, apptest.Fails)
	_, a := w.call(t)
	expect(t, "a failure", a, http.StatusBadGateway, "upstream_5xx")
	if paid, _ := a.JSON["payment"].(map[string]any); a.JSON["charged"] != false || a.Refund("state") != "owed" || paid["unproved"] == nil || a.JSON["receipt"] != nil {
		t.Errorf("the answer: %s", a.Body)
	}
	tried := `SELECT count(*) FROM refunds WHERE why = $1`
	apptest.Eventually(t, "the refund was looked at", func() bool {
		var n int
		if err := w.DB.QueryRow(t.Context(), tried, "waiting for the payment to be final").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "sent", Outcome: "failed", Reason: "upstream_5xx", Refund: "owed"})
	w.wantFigures(t, "before it is proved", 0, 1, 0)
	wantMoved(t, w.World, 0, 0)
	h.Does(apptest.Settles) // refunds go through it, too
	hold.letGo()
	if w.AwaitRefund(t, a.Call()) == "" {
		t.Error("the refund has no transaction")
	}
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "final", Outcome: "failed", Reason: "upstream_5xx", Refund: "confirmed"})
	w.wantFigures(t, "once it is proved", 1, 0, 0)
	if record := w.Record(t, a.Call()); record.JSON["receipt"] == nil {
		t.Errorf("the record says %s", record.Body)
	}
	wantMoved(t, w.World, 1, 1)
}

// A payment that never comes is not given back, whether the service was asked and failed or we died while it was.
func TestLater_ARefundOfAPaymentThatNeverComesIsVoid(t *testing.T) {
	t.Parallel()
	w := newLaterWorld(t, burst, 10, false, apptest.Fails, apptest.NewHosted(t, apptest.SupportsUs, lies))
	header, a := w.call(t)
	expect(t, "a failure", a, http.StatusBadGateway, "upstream_5xx")
	w.lapse(t)
	w.AwaitBooks(t, a.Call(), apptest.Books{State: "failed", Payment: "lost", Outcome: "failed", Reason: "upstream_5xx", Refund: "void"})
	w.wantFigures(t, "once it has lapsed", 0, 0, 0)
	again := w.Send(t, w.ask, header)
	if again.Refund("state") != "void" || !strings.Contains(again.Refund("why"), "a facilitator said that the payment was settled") || again.JSON["receipt"] == nil {
		t.Errorf("the same payment again: %s", again.Body)
	}
	wantMoved(t, w.World, 0, 0)
}
