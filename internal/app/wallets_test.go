package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/payment"
)

// longer is a form that no key gives, so that the token is shown it by its other overload. TestWallet minds the first 65 bytes.
func longer(ofKey []byte) []byte { return append(ofKey, 1) }

// parity is how some signers write v.
func parity(ofKey []byte) []byte { ofKey[64] -= 27; return ofKey }

// undeployed is a form as ERC-6492 has it, for a wallet that a factory could deploy.
func undeployed(t *testing.T) func(inner []byte) []byte {
	t.Helper()
	var form abi.Arguments
	for _, name := range []string{"address", "bytes", "bytes"} {
		kind, err := abi.NewType(name, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		form = append(form, abi.Argument{Type: kind})
	}
	return func(inner []byte) []byte {
		packed, err := form.Pack(common.HexToAddress("0xfac7"), []byte{1, 2, 3}, inner)
		if err != nil {
			t.Fatal(err)
		}
		return append(packed, common.FromHex(strings.Repeat("6492", 16))...)
	}
}

// B25, B27, B30, B31: whoever the token takes a signature from pays with it, and is known again by it.
func TestWallets_WhoeverTheTokenBelievesIsServed(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "wallets", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	wallet := w.Wallet(t, 10*apptest.PriceUnits, devnet.MoodHonest)
	plain := w.Plain(t, 10*apptest.PriceUnits)
	asked := 0
	for name, tt := range map[string]struct {
		payer apptest.Wallet
		form  func([]byte) []byte
	}{
		"a key":                                   {plain, nil},
		"a key that writes v as 0 or 1":           {plain, parity},
		"a key that wraps what needs no wrapper":  {plain, undeployed(t)},
		"a contract wallet":                       {wallet, nil},
		"a contract wallet with v as 0 or 1":      {wallet, parity},
		"a contract wallet in a form of its own":  {wallet, longer},
		"a deployed wallet in a wrapper":          {wallet, undeployed(t)},
		"a key that delegated to a wallet's code": {w.Delegated(t, apptest.PriceUnits, wallet.Address), nil},
	} {
		header := w.SignAs(t, tt.payer, terms, tt.form)
		before := w.Balance(t, tt.payer.Address)
		first := w.Send(t, ask, header)
		if first.Status != http.StatusOK || first.Outcome() != "served" {
			t.Errorf("%s: %d %s", name, first.Status, first.Body)
			continue
		}
		asked++
		again := w.Send(t, ask, header)
		if again.Status != http.StatusOK || again.Call() != first.Call() || string(again.Body) != string(first.Body) {
			t.Errorf("%s, the same payment again: %d %s of call %s, want the answer of call %s", name, again.Status, again.Body, again.Call(), first.Call())
		}
		if paid := before - w.Balance(t, tt.payer.Address); paid != apptest.PriceUnits {
			t.Errorf("%s: %d units were paid", name, paid)
		}
	}
	if s.Asked() != asked {
		t.Errorf("the service was asked %d times for %d payments", s.Asked(), asked)
	}
	wantMoved(t, w, asked, 0)
}

func TestWallets_GetTheirMoneyBackForAFailedCall(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "failing", apptest.Fails, nil)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	wallet := w.Wallet(t, apptest.PriceUnits, devnet.MoodHonest)
	for name, payer := range map[string]apptest.Wallet{
		"a contract wallet":    wallet,
		"a key that delegated": w.Delegated(t, apptest.PriceUnits, wallet.Address),
	} {
		w.Shift(t, time.Hour) // the cooldown of the failure before is over
		apptest.Eventually(t, "the service is open", func() bool {
			return w.Send(t, apptest.Ask(s.URL), "").Status == http.StatusPaymentRequired
		})
		a := w.Send(t, apptest.Ask(s.URL), w.SignAs(t, payer, terms, nil))
		expect(t, name, a, http.StatusBadGateway, "upstream_5xx")
		w.AwaitRefund(t, a.Call())
		if got := w.Balance(t, payer.Address); got != apptest.PriceUnits {
			t.Errorf("%s has %d units after its refund, want all of them", name, got)
		}
	}
	wantMoved(t, w, 2, 2)
}

// B27, B28, B30, B31, B35: what the token would not take is refused before anything is claimed, sent or asked, and named.
func TestWallets_WhatTheTokenWouldRefuseIsRefusedBeforeTheClaim(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "unmoved", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	wallet, plain := w.Wallet(t, apptest.PriceUnits, devnet.MoodHonest), w.Plain(t, apptest.PriceUnits)
	thief := apptest.Wallet{Address: wallet.Address, Owner: plain.Owner}
	counterfactual := apptest.Wallet{Address: common.HexToAddress("0x6492"), Owner: plain.Owner}
	w.Mint(t, counterfactual.Address, apptest.PriceUnits)
	random := func([]byte) []byte { return make([]byte, 200) }
	wrap := undeployed(t)

	for name, tt := range map[string]struct {
		payer      apptest.Wallet
		form       func([]byte) []byte
		status     int
		code, word string
	}{
		"a wallet that is not deployed":                      {counterfactual, wrap, 402, "payment_invalid", "eip6492_factory_not_allowed"},
		"a wallet that is not deployed, and a random inside": {counterfactual, func(k []byte) []byte { return wrap(random(k)) }, 402, "payment_invalid", "eip6492_factory_not_allowed"},
		"a wallet that is not deployed and does not say so":  {counterfactual, longer, 402, "payment_invalid", "invalid_exact_evm_signature"},
		"a deployed wallet, and a random inside a wrapper":   {wallet, func(k []byte) []byte { return wrap(random(k)) }, 402, "payment_invalid", "invalid_exact_evm_signature"},
		"a deployed wallet and another key":                  {thief, nil, 402, "payment_invalid", "invalid_exact_evm_signature"},
		"a deployed wallet and another key, longer":          {thief, longer, 402, "payment_invalid", "invalid_exact_evm_signature"},
		"a key's signature with a byte more":                 {plain, longer, 402, "payment_invalid", "invalid_exact_evm_signature"},
		"a key that delegated to what knows no signature":    {w.Delegated(t, apptest.PriceUnits, devnet.TokenAddress()), nil, 402, "payment_invalid", "invalid_exact_evm_signature"},
		"a wallet without money":                             {w.Wallet(t, 0, devnet.MoodHonest), nil, 402, "payer_unfunded", "insufficient_funds"},
		"a wallet that burns the gas":                        {w.Wallet(t, apptest.PriceUnits, devnet.MoodBurning), nil, 402, "payment_invalid", "invalid_exact_evm_signature"},
		"a wallet that floods the token":                     {w.Wallet(t, apptest.PriceUnits, devnet.MoodFlooding), nil, 503, "not_ready", ""},
	} {
		a := w.Send(t, ask, w.SignAs(t, tt.payer, terms, tt.form))
		expect(t, name, a, tt.status, tt.code)
		// The body speaks x402 v1, the header v2.
		want := payment.Code(tt.word).In(payment.V1)
		if word, _ := a.JSON["error"].(string); word != string(want) {
			t.Errorf("%s: x402's word is %q, want %q", name, word, want)
		}
		if a.JSON["charged"] != false {
			t.Errorf("%s: charged %v", name, a.JSON["charged"])
		}
	}
	w.Nothing(t)
	if s.Asked() != 0 || len(w.OpenStrikes(t, s.Slug)) != 0 {
		t.Errorf("the service was asked %d times and has %d strikes", s.Asked(), len(w.OpenStrikes(t, s.Slug)))
	}
	wantMoved(t, w, 0, 0)
}

// Nobody can use up a wallet's payment, or learn of it, with a signature that is not the wallet's.
func TestWallets_AForgedSignatureNeitherClaimsNorTells(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "forged", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	wallet := w.Wallet(t, apptest.PriceUnits, devnet.MoodHonest)
	header := w.SignAs(t, wallet, terms, nil)
	forged := apptest.WithSignature(t, header, make([]byte, 100))

	expect(t, "the forged one first", w.Send(t, ask, forged), http.StatusPaymentRequired, "payment_invalid")
	w.Nothing(t)
	paid := w.Send(t, ask, header)
	if paid.Status != http.StatusOK {
		t.Fatalf("the wallet's own after it: %d %s", paid.Status, paid.Body)
	}
	for name, a := range map[string]apptest.Answer{
		"the forged one afterwards":            w.Send(t, ask, forged),
		"the forged one for another request":   w.Send(t, ask.With(`{"n":2}`), forged),
		"the forged one with a broken request": w.Send(t, ask.With(`{"n":"x"}`), forged),
	} {
		expect(t, name, a, http.StatusConflict, "payment_reused")
		if a.Call() != "" || strings.Contains(string(a.Body), paid.Call()) || a.Header.Get("PAYMENT-RESPONSE") != "" {
			t.Errorf("%s: it tells of the call: %s", name, a.Body)
		}
	}
	if s.Asked() != 1 {
		t.Errorf("the service was asked %d times", s.Asked())
	}
}

// A wallet that says yes when it is simulated and no on the chain costs one transaction's gas for each payment, of which it gets two a day. It is
// its payer's doing, whatever it says when it is asked again.
func TestWallets_AWalletOfTwoFacesIsRejectedAndSoonNotTried(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "two-faced", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	terms := w.Challenge(t, ask)
	wallet := w.Wallet(t, apptest.PriceUnits, devnet.MoodTwoFaced)
	for n := range 2 {
		header := w.SignAs(t, wallet, terms, longer)
		for _, name := range []string{"first", "again"} {
			a := w.Send(t, ask, header)
			expect(t, name, a, http.StatusPaymentRequired, "settle_rejected")
			if a.JSON["charged"] != false {
				t.Errorf("%s: charged %v", name, a.JSON["charged"])
			}
		}
		if sent := w.Sent(t); sent != n+1 || w.Count(t, "rejected") != n+1 {
			t.Errorf("%d transactions were sent and %d calls rejected for %d payments", sent, w.Count(t, "rejected"), n+1)
		}
	}
	a := w.Send(t, ask, w.SignAs(t, wallet, terms, longer))
	expect(t, "a third of the same wallet", a, http.StatusPaymentRequired, "payment_invalid")
	if sent := w.Sent(t); sent != 2 || a.JSON["error"] != "invalid_transaction_state" {
		t.Errorf("%d transactions were sent, x402's word is %v", sent, a.JSON["error"])
	}
	if s.Asked() != 0 || len(w.OpenStrikes(t, s.Slug)) != 0 {
		t.Errorf("the service was asked %d times and has %d strikes", s.Asked(), len(w.OpenStrikes(t, s.Slug)))
	}
	wantMoved(t, w, 0, 0)
}

// B90: whoever put a wallet's payment on the chain first, it is paid. Nothing can be simulated then, so the wallet is asked itself.
func TestWallets_APaymentThatAnotherSentFirstIsServed(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "overtaken", apptest.Works, nil)
	ask := apptest.Ask(s.URL)
	header := w.SignAs(t, w.Wallet(t, apptest.PriceUnits, devnet.MoodHonest), w.Challenge(t, ask), longer)
	token := devnet.TokenAddress()
	newAttacker(t, w).send(t, &token, chain.SettleGas, chain.Calldata(apptest.Signed(t, header)))
	wantMoved(t, w, 1, 0)
	expect(t, "the same with a forged signature", w.Send(t, ask, apptest.WithSignature(t, header, make([]byte, 100))),
		http.StatusPaymentRequired, "payment_invalid")
	if a := w.Send(t, ask, header); a.Status != http.StatusOK {
		t.Errorf("the wallet's own: %d %s", a.Status, a.Body)
	}
	wantMoved(t, w, 1, 0)
}

// What a retry sends again is what the database kept, to the byte of the wallet's own form.
func TestWallets_ARetryTakesAnUnclearCallOver(t *testing.T) {
	t.Parallel()
	u := newUnclear(t, deaf)
	header := u.SignAs(t, u.Wallet(t, apptest.PriceUnits, devnet.MoodHonest), u.Challenge(t, u.ask), longer)
	lost := u.Send(t, u.ask, header)
	wantPending(t, "a payment that was lost", lost)
	u.facilitator.set(honest)
	u.Shift(t, time.Minute) // past the lease
	a := u.Send(t, u.ask, header)
	if a.Status != http.StatusOK || a.Call() != lost.Call() {
		t.Errorf("the same payment again: %d %s of call %s, want call %s served", a.Status, a.Body, a.Call(), lost.Call())
	}
	wantMoved(t, u.World, 1, 0)
}
