package app_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

// Without a gas key of ours, calls are settled and refunded through somebody else's facilitator.
func TestRemote_SettlesACallAndARefund(t *testing.T) {
	t.Parallel()
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	w := newHostedWorld(t, false, apptest.Works, h)
	payer := w.Payer(t, 2*apptest.PriceUnits)
	served := w.Pay(t, payer, w.Challenge(t, w.ask), w.ask)
	if served.Status != http.StatusOK || served.Header.Get("PAYMENT-RESPONSE") == "" {
		t.Fatalf("the call: %d %s", served.Status, served.Body)
	}
	w.service.Do(apptest.Fails)
	failed := w.Pay(t, payer, w.Challenge(t, w.ask), w.ask)
	expect(t, "a failure", failed, http.StatusBadGateway, "upstream_5xx")
	if w.AwaitRefund(t, failed.Call()) == "" {
		t.Error("the refund has no transaction")
	}
	wantMoved(t, w.World, 2, 1)
	if got := w.Balance(t, payer.Address()); got != apptest.PriceUnits {
		t.Errorf("the payer has %d units, want one price back", got)
	}
}

// Whatever it says, the service works for money that our own node sees, and the caller is asked to sign again only where our own node sees
// that this payment can not pay. B63, B64, B68, B70, B71, B73, B75.
// B138: a facilitator that is down, or lies, strikes nobody.
func TestRemote_ItsWordIsNoProof(t *testing.T) {
	t.Parallel()
	nobody := common.HexToHash("0x5e77aa0000000000000000000000000000000000000000000000000000000001")
	h := apptest.NewHosted(t, apptest.SupportsUs, nil)
	w := newHostedWorld(t, false, apptest.Works, h)
	terms := w.Challenge(t, w.ask)
	lies := map[string]func(apptest.Settling){
		"a yes about a transaction of nobody": func(s apptest.Settling) { s.Say(true, "", nobody) },
		"a yes without a transaction":         func(s apptest.Settling) { s.Say(true, "", common.Hash{}) },
		"a no":                                apptest.Declines("insufficient_funds"),
		"a no of the nonce":                   apptest.Declines("invalid_exact_evm_nonce_already_used"),
		"pending, and nobody sent it":         func(s apptest.Settling) { s.Say(false, "settlement_pending", nobody) },
		"HTML":                                apptest.Replies(200, "<html>"),
		"trouble":                             apptest.Replies(500, `{"error":"oops"}`),
		"it hangs up":                         func(apptest.Settling) { panic(http.ErrAbortHandler) },
		"a redirect":                          func(s apptest.Settling) { http.Redirect(s.W, s.R, "/elsewhere", http.StatusPermanentRedirect) },
	}
	var told sync.WaitGroup
	by, calls := map[common.Address]func(apptest.Settling){}, make(chan string, len(lies))
	h.Does(func(s apptest.Settling) { by[s.Signed.From](s) })
	headers := map[string]string{}
	for name, how := range lies {
		payer := w.Payer(t, apptest.PriceUnits)
		by[payer.Address()], headers[name] = how, w.SignFor(t, payer, terms, 60)
	}
	for name, header := range headers {
		told.Go(func() {
			a := w.Send(t, w.ask, header)
			wantPending(t, name, a)
			calls <- a.Call()
		})
	}
	told.Wait()
	close(calls)
	if err := w.Chain.Mine(t.Context(), 70); err != nil {
		t.Fatal(err)
	}
	w.Shift(t, time.Minute)
	for id := range calls {
		w.AwaitBooks(t, id, apptest.Books{State: "refused", Outcome: "refused", Reason: "settle_failed"})
	}
	wantMoved(t, w.World, 0, 0)
	for payer := range by {
		if got := w.Balance(t, payer); got != apptest.PriceUnits {
			t.Errorf("a payer has %d units", got)
		}
	}
	if w.service.Asked() != 0 || len(w.OpenStrikes(t, w.service.Slug)) != 0 {
		t.Errorf("the service was asked %d times and has strikes %v", w.service.Asked(), w.OpenStrikes(t, w.service.Slug))
	}
}

// A facilitator that throttles us, or wants money from us, is the rail's trouble: whoever comes next is not charged and told to come back.
func TestRemote_AFacilitatorThatTurnsUsAwayIsNobodysFault(t *testing.T) {
	t.Parallel()
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Replies(http.StatusTooManyRequests, ""))
	w := newHostedWorld(t, false, apptest.Works, h)
	terms := w.Challenge(t, w.ask)
	wantPending(t, "it has seen the payment", w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, w.ask))
	a := w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, w.ask)
	if a.Status != http.StatusServiceUnavailable || a.JSON["charged"] != false || a.JSON["party"] != "rail" || a.Header.Get("Retry-After") == "" ||
		a.Code() != "released" && a.Code() != "not_ready" {
		t.Errorf("while it rests: %d %s", a.Status, a.Body)
	}
	if h.Asked.Load() != 1 || w.service.Asked() != 0 || len(w.OpenStrikes(t, w.service.Slug)) != 0 {
		t.Errorf("it was asked %d times, the service %d times", h.Asked.Load(), w.service.Asked())
	}
}

// A payment that moved is found whatever the facilitator said of it, and the same payment sent again is served for it.
func TestRemote_APaymentThatMovedIsServed(t *testing.T) {
	t.Parallel()
	nobody := common.HexToHash("0x5e77aa0000000000000000000000000000000000000000000000000000000002")
	h := apptest.NewHosted(t, apptest.SupportsUs, nil)
	w := newHostedWorld(t, false, apptest.Works, h)
	for name, how := range map[string]func(apptest.Settling){
		"it says that it is pending": func(s apptest.Settling) { s.Behind(); s.Say(false, "settlement_pending", nobody) },
		"it hangs up":                func(s apptest.Settling) { s.Behind(); panic(http.ErrAbortHandler) },
		"it says no":                 func(s apptest.Settling) { s.Behind(); apptest.Declines("insufficient_funds")(s) },
	} {
		h.Does(how)
		asked := w.service.Asked()
		header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask))
		a := w.Send(t, w.ask, header)
		if a.Status != http.StatusOK {
			wantPending(t, name+", not seen at once", a)
			w.AwaitBooks(t, a.Call(), apptest.Books{State: "settled", Payment: "final"})
			a = w.Send(t, w.ask, header)
		}
		if a.Status != http.StatusOK || w.service.Asked() != asked+1 {
			t.Errorf("%s: %d %s, the service was asked %d times", name, a.Status, a.Body, w.service.Asked()-asked)
		}
	}
	wantMoved(t, w.World, 3, 0)
}

// A payer that has spent its money meanwhile is told so, because our own node sees it.
func TestRemote_APayerThatOurNodeSeesWithoutFundsIsToldSo(t *testing.T) {
	t.Parallel()
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	w := newHostedWorld(t, false, apptest.Works, h)
	payer := w.Payer(t, apptest.PriceUnits)
	terms := w.Challenge(t, w.ask)
	if a := w.Pay(t, payer, terms, w.ask); a.Status != http.StatusOK {
		t.Fatalf("with funds: %d %s", a.Status, a.Body)
	}
	// It is known by now, so its balance is not looked at before it is settled: our node is asked then, and the facilitator is not.
	expect(t, "without funds", w.Pay(t, payer, terms, w.ask), http.StatusPaymentRequired, "settle_rejected")
	if n := h.Asked.Load(); n != 1 {
		t.Errorf("the facilitator was asked %d times, want once", n)
	}
	wantMoved(t, w.World, 1, 0)
}

// The first facilitator is confused and then gone; ours, after it in the file, settles and refunds.
func TestRemote_OurOwnEngineSettlesWhatTheFirstOneDoesNot(t *testing.T) {
	t.Parallel()
	first := apptest.NewHosted(t, apptest.SupportsUs, apptest.Replies(http.StatusBadGateway, "<html>"))
	w := newHostedWorld(t, true, apptest.Works, first)
	payer := w.Payer(t, 2*apptest.PriceUnits)
	terms := w.Challenge(t, w.ask)
	if a := w.Pay(t, payer, terms, w.ask); a.Status != http.StatusOK || first.Asked.Load() != 1 {
		t.Fatalf("the first is confused: %d %s, asked %d times", a.Status, a.Body, first.Asked.Load())
	}
	first.Close()
	w.service.Do(apptest.Fails)
	failed := w.Pay(t, payer, terms, w.ask)
	expect(t, "the first is gone, and the service fails", failed, http.StatusBadGateway, "upstream_5xx")
	if w.AwaitRefund(t, failed.Call()) == "" {
		t.Error("the refund has no transaction")
	}
	wantMoved(t, w.World, 2, 1)
}

// B71, #1692: with nobody to settle the doors are closed before anything is charged, and open again by themselves.
func TestRemote_WithNobodyToSettleNothingIsTaken(t *testing.T) {
	t.Parallel()
	first, second := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles), apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	w := newHostedWorld(t, false, apptest.Works, first, second)
	terms := w.Challenge(t, w.ask)
	first.Close()
	if a := w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, w.ask); a.Status != http.StatusOK || second.Asked.Load() != 1 {
		t.Fatalf("the first is gone: %d %s, the second was asked %d times", a.Status, a.Body, second.Asked.Load())
	}
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), terms)
	second.Close()
	a := w.Send(t, w.ask, header)
	if a.Status != http.StatusServiceUnavailable || a.Code() != "released" && a.Code() != "not_ready" || a.JSON["charged"] != false ||
		a.Header.Get("Retry-After") == "" {
		t.Fatalf("both gone: %d %s", a.Status, a.Body)
	}
	apptest.Eventually(t, "nobody is asked to pay", func() bool {
		unpaid := w.Send(t, w.ask, "")
		return unpaid.Status == http.StatusServiceUnavailable && unpaid.Code() == "not_ready"
	})
	second.Reopen(t)
	apptest.Eventually(t, "the same payment is served", func() bool { return w.Send(t, w.ask, header).Status == http.StatusOK })
	wantMoved(t, w.World, 2, 0)
}

// The program does not start where everybody has answered and nobody settles, and says in one line who said what: that is a mistake of the configuration.
// Whoever is gone, or answers something else, may settle in a moment.
func TestRemote_ANetworkThatNobodySupportsIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ supports, want string }{
		"it supports another network": {strings.ReplaceAll(apptest.SupportsUs, "84532", "8453"), "facilitator hosted-a supports eip155:8453 (v2)"},
		"it supports another scheme":  {strings.ReplaceAll(apptest.SupportsUs, "exact", "upto"), "facilitator hosted-a supports no network"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := startFails(t, apptest.HostedFile(t, false, apptest.NewHosted(t, tt.supports, nil)), "MARKET_GAS_KEY=")
			for _, want := range []string{tt.want, "network " + devnet.NetworkID + ": no facilitator settles on it"} {
				if !strings.Contains(text, want) || strings.Contains(text, "\n") || strings.Contains(text, "hunter2") {
					t.Errorf("%q, want one line that says %q", text, want)
				}
			}
		})
	}
	gone, confused := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles), apptest.NewHosted(t, "<html>", nil)
	elsewhere := apptest.NewHosted(t, strings.ReplaceAll(apptest.SupportsUs, "84532", "8453"), nil)
	gone.Close()
	w := newHostedWorld(t, false, apptest.Works, gone, confused, elsewhere)
	if a := w.Send(t, w.ask, ""); a.Status != http.StatusServiceUnavailable || a.Code() != "not_ready" || a.Header.Get("Retry-After") == "" {
		t.Errorf("while nobody settles: %d %s", a.Status, a.Body)
	}
	gone.Reopen(t)
	apptest.Eventually(t, "it settles once it is there", func() bool { return w.Send(t, w.ask, "").Status == http.StatusPaymentRequired })
	if a := w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask), w.ask); a.Status != http.StatusOK {
		t.Errorf("it is there: %d %s", a.Status, a.Body)
	}
}

// A refund is sent again, and no oftener than a facilitator may be asked, until it is on the chain.
func TestRemote_ARefundOutlivesAFacilitatorThatIsConfused(t *testing.T) {
	t.Parallel()
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	w := newHostedWorld(t, false, apptest.Fails, h)
	payer := w.Payer(t, apptest.PriceUnits)
	h.Does(func(s apptest.Settling) {
		if s.Signed.From == payer.Address() {
			apptest.Settles(s)
			return
		}
		apptest.Replies(500, "<html>")(s)
	})
	failed := w.Pay(t, payer, w.Challenge(t, w.ask), w.ask)
	expect(t, "a failure", failed, http.StatusBadGateway, "upstream_5xx")
	apptest.Eventually(t, "the refund was tried", func() bool { return h.Asked.Load() >= 2 })
	h.Does(apptest.Settles)
	w.Shift(t, time.Minute)
	if w.AwaitRefund(t, failed.Call()) == "" {
		t.Error("the refund has no transaction")
	}
	wantMoved(t, w.World, 1, 1)
	if got := w.Balance(t, payer.Address()); got != apptest.PriceUnits {
		t.Errorf("the payer has %d units", got)
	}
}
