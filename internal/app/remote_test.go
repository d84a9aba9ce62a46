package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

// Without a gas key of ours, calls are settled and refunded through somebody else's facilitator.
func TestRemote_SettlesACallAndARefund(t *testing.T) {
	t.Parallel()
	h := newHosted(t, supportsUs, settles)
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
func TestRemote_ItsWordIsNoProof(t *testing.T) {
	t.Parallel()
	nobody := common.HexToHash("0x5e77aa0000000000000000000000000000000000000000000000000000000001")
	for name, how := range map[string]func(settling){
		"a yes about a transaction of nobody":   func(s settling) { s.say(true, "", nobody) },
		"a yes without a transaction":           func(s settling) { s.say(true, "", common.Hash{}) },
		"a no, and nobody sent it":              declines("insufficient_funds"),
		"a no of the signature":                 declines("invalid_exact_evm_signature"),
		"a no of the nonce":                     declines("invalid_exact_evm_nonce_already_used"),
		"pending, and nobody sent it":           func(s settling) { s.say(false, "settlement_pending", nobody) },
		"HTML":                                  replies(200, "<html>"),
		"trouble":                               replies(500, `{"error":"oops"}`),
		"it hangs up":                           func(settling) { panic(http.ErrAbortHandler) },
		"a redirect":                            func(s settling) { http.Redirect(s.w, s.r, "/elsewhere", http.StatusPermanentRedirect) },
		"it wants to be paid":                   replies(402, `{}`),
		"too many requests, and it has seen it": replies(429, ``),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHosted(t, supportsUs, how)
			w := newHostedWorld(t, false, apptest.Works, h)
			payer := w.Payer(t, apptest.PriceUnits)
			a := w.Send(t, w.ask, w.SignFor(t, payer, w.Challenge(t, w.ask), 60))
			wantPending(t, "told the lie", a)
			w.wantLapsed(t, a.Call())
			wantMoved(t, w.World, 0, 0)
			if w.service.Asked() != 0 || w.Balance(t, payer.Address()) != apptest.PriceUnits || len(w.OpenStrikes(t, w.service.Slug)) != 0 {
				t.Errorf("the service was asked %d times, the payer has %d", w.service.Asked(), w.Balance(t, payer.Address()))
			}
		})
	}
}

// A payment that moved is found whatever the facilitator said of it, and the same payment sent again is served for it.
func TestRemote_APaymentThatMovedIsServed(t *testing.T) {
	t.Parallel()
	nobody := common.HexToHash("0x5e77aa0000000000000000000000000000000000000000000000000000000002")
	for name, how := range map[string]func(settling){
		"it names another transaction": func(s settling) { s.engine.Settle(s.r.Context(), s.signed); s.say(true, "", nobody) },
		"it says that it is pending":   func(s settling) { s.behind(); s.say(false, "settlement_pending", nobody) },
		"it hangs up":                  func(s settling) { s.behind(); panic(http.ErrAbortHandler) },
		"it says no":                   func(s settling) { s.engine.Settle(s.r.Context(), s.signed); declines("insufficient_funds")(s) },
		"it says HTML":                 func(s settling) { s.engine.Settle(s.r.Context(), s.signed); replies(200, "<html>")(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHosted(t, supportsUs, how)
			w := newHostedWorld(t, false, apptest.Works, h)
			header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask))
			a := w.Send(t, w.ask, header)
			if a.Status != http.StatusOK {
				wantPending(t, "not seen at once", a)
				w.AwaitBooks(t, a.Call(), apptest.Books{State: "settled", Payment: "final"})
				a = w.Send(t, w.ask, header)
			}
			if a.Status != http.StatusOK || w.service.Asked() != 1 {
				t.Errorf("%d %s, the service was asked %d times", a.Status, a.Body, w.service.Asked())
			}
			wantMoved(t, w.World, 1, 0)
		})
	}
}

// A payer that has spent its money meanwhile is told so, because our own node sees it.
func TestRemote_APayerThatOurNodeSeesWithoutFundsIsToldSo(t *testing.T) {
	t.Parallel()
	h := newHosted(t, supportsUs, settles)
	w := newHostedWorld(t, false, apptest.Works, h)
	payer := w.Payer(t, apptest.PriceUnits)
	terms := w.Challenge(t, w.ask)
	if a := w.Pay(t, payer, terms, w.ask); a.Status != http.StatusOK {
		t.Fatalf("with funds: %d %s", a.Status, a.Body)
	}
	// It is known by now, so nobody looks at its balance before the facilitator does.
	for _, code := range []string{"insufficient_funds", "invalid_exact_evm_transaction_simulation_failed"} {
		h.does(declines(code))
		a := w.Pay(t, payer, terms, w.ask)
		expect(t, code, a, http.StatusPaymentRequired, "settle_rejected")
	}
	h.does(declines("unexpected_settle_error"))
	wantPending(t, "a no that blames nobody", w.Pay(t, payer, terms, w.ask))
	wantMoved(t, w.World, 1, 0)
}

// The first of two facilitators is gone, confused or slow; the second settles.
func TestRemote_TheNextOneSettlesWhatTheFirstDoesNot(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		how   func(settling)
		local bool // the second one is our own
	}{
		"the first is confused":                {replies(502, "<html>"), false},
		"the first turns us away":              {replies(429, ""), false},
		"the first says no without a reason":   {declines("unexpected_settle_error"), false},
		"the first lies about the payer":       {declines("insufficient_funds"), false},
		"the first never answers":              {func(s settling) { <-s.r.Context().Done() }, false},
		"the first is gone":                    {nil, false},
		"the first is confused, we come after": {replies(502, "<html>"), true},
		"the first is gone, we come after":     {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := newHosted(t, supportsUs, tt.how)
			all := []*hosted{first, newHosted(t, supportsUs, settles)}
			if tt.local {
				all = all[:1]
			}
			w := newHostedWorld(t, tt.local, apptest.Works, all...)
			if tt.how == nil {
				first.Close()
			}
			a := w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask), w.ask)
			if a.Status != http.StatusOK {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			if asked := first.asked.Load(); (asked == 1) != (tt.how != nil) {
				t.Errorf("the first was asked %d times", asked)
			}
			wantMoved(t, w.World, 1, 0)
		})
	}
}

// B71, #1692: with nobody to settle the doors are closed before anything is charged, and open again by themselves.
func TestRemote_WithNobodyToSettleNothingIsTaken(t *testing.T) {
	t.Parallel()
	first, second := newHosted(t, supportsUs, settles), newHosted(t, supportsUs, settles)
	w := newHostedWorld(t, false, apptest.Works, first, second)
	payer := w.Payer(t, apptest.PriceUnits)
	header := w.Sign(t, payer, w.Challenge(t, w.ask))
	first.Close()
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
	second.reopen(t)
	apptest.Eventually(t, "the same payment is served", func() bool { return w.Send(t, w.ask, header).Status == http.StatusOK })
	wantMoved(t, w.World, 1, 0)
}

// The program does not start where nobody settles, and says in one line who said what.
func TestRemote_ANetworkThatNobodySupportsIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	gone := newHosted(t, supportsUs, settles)
	gone.Close()
	for name, tt := range map[string]struct {
		all  []*hosted
		want []string
	}{
		"it supports another network": {[]*hosted{newHosted(t, strings.ReplaceAll(supportsUs, "84532", "8453"), nil)}, []string{"facilitator hosted-a supports eip155:8453 (v2)"}},
		"it supports another scheme":  {[]*hosted{newHosted(t, strings.ReplaceAll(supportsUs, "exact", "upto"), nil)}, []string{"facilitator hosted-a supports no network"}},
		"it answers HTML":             {[]*hosted{newHosted(t, "<html>", nil)}, []string{"facilitator hosted-a: supported: it answers no JSON"}},
		"one is gone and one supports another": {[]*hosted{gone, newHosted(t, strings.ReplaceAll(supportsUs, "84532", "8453"), nil)},
			[]string{"facilitator hosted-a: supported: it cannot be reached", "facilitator hosted-b supports eip155:8453 (v2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := startFails(t, hostedFile(t, false, tt.all...), "MARKET_GAS_KEY=")
			for _, want := range append(tt.want, "network "+devnet.NetworkID+": no facilitator settles on it") {
				if !strings.Contains(text, want) || strings.Contains(text, "\n") || strings.Contains(text, "hunter2") {
					t.Errorf("%q, want one line that says %q", text, want)
				}
			}
		})
	}
	w := newHostedWorld(t, false, apptest.Works, gone, newHosted(t, supportsUs, settles))
	if a := w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, w.ask), w.ask); a.Status != http.StatusOK {
		t.Errorf("another one supports it: %d %s", a.Status, a.Body)
	}
}

// A refund is sent again, and no oftener than a facilitator may be asked, until it is on the chain.
func TestRemote_ARefundOutlivesAFacilitatorThatIsConfused(t *testing.T) {
	t.Parallel()
	h := newHosted(t, supportsUs, settles)
	w := newHostedWorld(t, false, apptest.Fails, h)
	payer := w.Payer(t, apptest.PriceUnits)
	h.does(func(s settling) {
		if s.signed.From == payer.Address() {
			settles(s)
			return
		}
		replies(500, "<html>")(s)
	})
	failed := w.Pay(t, payer, w.Challenge(t, w.ask), w.ask)
	expect(t, "a failure", failed, http.StatusBadGateway, "upstream_5xx")
	apptest.Eventually(t, "the refund was tried", func() bool { return h.asked.Load() >= 2 })
	h.does(settles)
	w.Shift(t, time.Minute)
	if w.AwaitRefund(t, failed.Call()) == "" {
		t.Error("the refund has no transaction")
	}
	wantMoved(t, w.World, 1, 1)
	if got := w.Balance(t, payer.Address()); got != apptest.PriceUnits {
		t.Errorf("the payer has %d units", got)
	}
}
