package app_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/devnet"
	"market/internal/ledger"
	"market/internal/money"
)

const (
	// bookedCalls is how many calls the run makes beside all other tests; MARKET_BOOKED_CALLS asks for another number.
	bookedCalls  = 48
	bookedAtOnce = 16
	// bookedDraws is how often the provider asks for its money: an account may ask for 120 changes an hour.
	bookedDraws = 60
)

// A till is a market with one seller who is paid out again and again, while the books are held against the chain.
type till struct {
	*apptest.World
	seller  *apptest.Seller
	service *apptest.Service
	paidOut int // payouts that were asked for and made
}

// mixed serves, refuses or fails, by what it is asked for.
func mixed(w http.ResponseWriter, r *http.Request) {
	var in struct{ N int }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch in.N {
	case 2:
		http.Error(w, "not this one", http.StatusUnprocessableEntity)
	case 3:
		apptest.Fails(w, r)
	default:
		apptest.Works(w, r)
	}
}

func newTill(t *testing.T) *till {
	t.Helper()
	w := apptest.StartWith(t, apptest.Setup{Burst: 100_000, Quiet: true}, "MARKET_STRIKE_LIMIT=100", "MARKET_STRIKE_WINDOW=1s", "MARKET_COOLDOWN=1ms")
	_, wallet := apptest.NewKey(t)
	b := &till{World: w, seller: w.SignIn(t, wallet), service: w.List(t, "till", mixed, nil)}
	if _, err := w.DB.Exec(t.Context(), `UPDATE services SET owner_id = (SELECT id FROM accounts)`); err != nil {
		t.Fatal(err)
	}
	b.seller.Want(t, http.StatusOK, http.MethodPut, "/api/v1/provider/payout-address", map[string]any{"network": devnet.NetworkID, "address": wallet.Address().Hex()})
	return b
}

// pay has so many calls made at once: half of them are served.
func (b *till) pay(t *testing.T, calls int, sign func() string) error {
	var paying errgroup.Group
	for i := range calls {
		ask, want := apptest.Ask(b.service.URL), http.StatusOK
		switch i % 4 {
		case 1:
			ask, want = ask.With(`{"n":2}`), http.StatusUnprocessableEntity
		case 3:
			ask, want = ask.With(`{"n":3}`), http.StatusBadGateway
		}
		header := sign()
		paying.Go(func() error {
			a := b.Send(t, ask, header)
			if a.Status == want || a.Code() == "in_cooldown" {
				return nil // a failure beside it has the service rest for a moment
			}
			return fmt.Errorf("a call: %d %s, want %d", a.Status, a.Body, want)
		})
	}
	return paying.Wait()
}

// draw has the seller paid what is there, if anything is.
func (b *till) draw(t *testing.T) error {
	t.Helper()
	a := b.seller.Ask(t, http.MethodPost, "/api/v1/provider/payouts", map[string]any{"network": devnet.NetworkID, "asset": devnet.TokenAddress().Hex()})
	switch a.Status {
	case http.StatusCreated:
		b.paidOut++
	case http.StatusConflict: // nothing is final, or the last one is on its way
	default:
		return fmt.Errorf("pay out: %d %s", a.Status, a.Body)
	}
	return nil
}

const bookedSQL = `
SELECT (SELECT count(*) FROM refunds WHERE state <> 'confirmed') + (SELECT count(*) FROM payouts WHERE state <> 'confirmed')
     + (SELECT count(*) FROM calls WHERE payment_state IN ('sent', 'mined') OR state IN ('settling', 'settled', 'asked', 'unknown'))`

// settle mines until everything that moves has, and the seller has been paid all that it earned.
func (b *till) settle(t *testing.T) {
	t.Helper()
	last := 0
	apptest.Eventually(t, "everything has ended, and all that was earned is paid out", func() bool {
		if err := b.Chain.Mine(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := b.DB.QueryRow(t.Context(), bookedSQL).Scan(&last); err != nil {
			t.Fatal(err)
		}
		if last != 0 {
			return false
		}
		before := b.paidOut
		if err := b.draw(t); err != nil {
			t.Fatal(err)
		}
		return b.paidOut == before
	})
}

// Calls are served, refused, failed and refunded, and their provider is paid, while the chain is held against the books all the time and the clock is put
// forward: nothing is ever said to differ, the books say what the rows say, and in the end the provider has all that it earned.
func TestBooks_ARunningMarketIsNeverDifferentAndPaysOutAllThatWasEarned(t *testing.T) {
	t.Parallel()
	calls := int(numberFrom(t, "MARKET_BOOKED_CALLS", bookedCalls)) //nolint:gosec // a test's own number
	b := newTill(t)
	payer := b.Payer(t, uint64(calls)*apptest.PriceUnits)
	terms := b.Challenge(t, apptest.Ask(b.service.URL))
	looks, ctx := 0, t.Context()
	looking, done := context.WithCancel(ctx)
	var beside errgroup.Group
	beside.Go(func() error {
		for looking.Err() == nil {
			if status, answer := b.Admin(t, http.MethodPost, moneyPath+"/reconcile", nil); status != http.StatusOK || answer["ok"] != true {
				return fmt.Errorf("look %d at the chain: %d, wrong is %v, different %v", looks, status, answer["wrong"], answer["differences"])
			}
			looks++
			wait(t, min(time.Second, time.Duration(calls)*time.Millisecond))
		}
		return nil
	})
	for made := 0; made < calls; made += bookedAtOnce {
		if err := b.pay(t, min(bookedAtOnce, calls-made), func() string { return b.SignFor(t, payer, terms, 900) }); err != nil {
			t.Fatal(err)
		}
		if made/bookedAtOnce%max(1, calls/bookedAtOnce/bookedDraws) == 0 {
			if err := b.draw(t); err != nil {
				t.Fatal(err)
			}
		}
		if made%(32*bookedAtOnce) == 0 { // less in all than a session lasts
			b.Shift(t, 20*time.Minute)
		}
	}
	b.settle(t)
	done()
	if err := beside.Wait(); err != nil {
		t.Error(err)
	}
	wantRight(t, "at the end", reconciled(t, b.World))
	b.adds(t, calls)
	t.Logf("%d calls, %d payouts, %d looks at the chain", calls, b.paidOut, looks)
}

const endedSQL = `
SELECT (SELECT count(*) FROM calls), (SELECT count(*) FROM deliveries WHERE outcome = 'served'), (SELECT count(*) FROM refunds WHERE state = 'confirmed'),
       (SELECT count(*) FROM differences)`

// adds checks the end: promise one, the books against the rows, and what the provider and the treasury have by the chain.
func (b *till) adds(t *testing.T, calls int) {
	t.Helper()
	var all, served, refunded, differed int
	if err := b.DB.QueryRow(t.Context(), endedSQL).Scan(&all, &served, &refunded, &differed); err != nil {
		t.Fatal(err)
	}
	if all == 0 || all > calls || served+refunded != all || differed != 0 {
		t.Errorf("of %d calls %d came to be, %d were served and %d refunded; %d differences were named", calls, all, served, refunded, differed)
	}
	figures, err := delivery.PromiseOne(t.Context(), b.DB)
	if err != nil || !figures.Balanced() {
		t.Errorf("promise one: %v, %v", figures, err)
	}
	if wrong, err := (ledger.Store{}).Check(t.Context(), b.DB, 10); err != nil || !wrong.Sound() {
		t.Errorf("the books say otherwise than the rows: %v, %v", wrong, err)
	}
	var fee int
	if err := b.DB.QueryRow(t.Context(), `SELECT coalesce(sum(div(amount * fee_bps, 10000)), 0)::bigint FROM calls WHERE state = 'served'`).Scan(&fee); err != nil {
		t.Fatal(err)
	}
	if got, want := b.Balance(t, b.seller.Wallet.Address()), uint64(served*apptest.PriceUnits-fee); got != want { //nolint:gosec // a test's own numbers
		t.Errorf("the provider has %d units, and earned %d", got, want)
	}
	if got := b.Balance(t, b.Treasury); got != uint64(fee) { //nolint:gosec // a test's own number
		t.Errorf("the treasury has %d units, and %d are its fees", got, fee)
	}
}

// Of each kind of difference that somebody can make on the chain, one: it is named, and closes the network where it is to.
func TestBooks_WhatSomebodyDoesToTheTreasuryIsNamedAndClosesTheNetwork(t *testing.T) {
	t.Parallel()
	b := newTill(t)
	payer := b.Payer(t, 4*apptest.PriceUnits)
	terms := b.Challenge(t, apptest.Ask(b.service.URL))
	if err := b.pay(t, 1, func() string { return b.SignFor(t, payer, terms, 900) }); err != nil {
		t.Fatal(err)
	}
	b.lasts(t)
	wantRight(t, "before", reconciled(t, b.World))
	b.Mint(t, b.Treasury, 5)
	b.lasts(t)
	kinds, closed := b.differ(t)
	if kinds != "inflow" || closed {
		t.Errorf("money from nobody: %s differ, closed: %t", kinds, closed)
	}
	thief, err := chain.ParseKey(b.Env("MARKET_TREASURY_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	head, err := b.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, nobody := apptest.NewKey(t)
	a := chain.Authorization{From: b.Treasury, To: nobody.Address(), Value: money.FromUnits(apptest.PriceUnits), ValidBefore: head.Time + 3_600}
	_, _ = rand.Read(a.Nonce[:]) // never fails
	b.Relay(t, apptest.Authorize(t, thief, a))
	b.lasts(t)
	if kinds, closed = b.differ(t); kinds != "inflow liabilities outflow" || !closed {
		t.Errorf("the provider's money is gone: %s differ, closed: %t", kinds, closed)
	}
	apptest.Eventually(t, "nobody is asked to pay", func() bool { return b.Send(t, apptest.Ask(b.service.URL), "").Status == http.StatusServiceUnavailable })
}

// lasts lets what is there be final, and last.
func (b *till) lasts(t *testing.T) {
	t.Helper()
	if err := b.Chain.Mine(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		reconciled(t, b.World)
	}
	b.Shift(t, 20*time.Minute)
	for range 2 {
		reconciled(t, b.World)
	}
}

// differ returns the kinds of what differs, and whether that closes the network.
func (b *till) differ(t *testing.T) (kinds string, closed bool) {
	t.Helper()
	const sql = `SELECT coalesce(string_agg(DISTINCT kind, ' ' ORDER BY kind), ''), coalesce(bool_or(closed_at IS NOT NULL), false) FROM differences WHERE ended_at IS NULL`
	if err := b.DB.QueryRow(t.Context(), sql).Scan(&kinds, &closed); err != nil {
		t.Fatal(err)
	}
	return kinds, closed
}
