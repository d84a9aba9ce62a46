package reconcile

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/ledger"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

// suspense is what stands there, in base units.
func suspense(t *testing.T, b *bench) string {
	t.Helper()
	all, err := ledger.Store{}.TrialBalance(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Account == ledger.Suspense {
			return one.Amount.String()
		}
	}
	return "0"
}

func TestReconciler_StrangersDustIsBookedAndNamedOnceAndClosesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := b.receive(t, 500)
	b.look(t)
	pgtest.Shift(t, b.db, 4*time.Minute)
	b.look(t)
	b.look(t)
	b.want(t, "after four minutes", false)
	b.last(t, time.Hour)
	b.want(t, "booked", false, Inflow)
	b.last(t, 24*time.Hour)
	b.want(t, "a day later", false, Inflow)
	if got := suspense(t, b); got != "-500" || len(b.told) != 1 {
		t.Errorf("in suspense are %s, told is %+v; want -500 and one", got, b.told)
	}

	// Whoever signed it shows it to us after all.
	b.prove(t, b.claim(t, in.Other, 500), in)
	b.last(t, time.Hour)
	b.want(t, "claimed", false)
	if got := suspense(t, b); got != "0" || len(b.told) != 2 || !b.told[1].Over {
		t.Errorf("in suspense are %s, told is %+v; want 0 and the end", got, b.told)
	}
	if f, err := (ledger.Store{}).Check(t.Context(), b.db, 10); err != nil || !f.Sound() {
		t.Errorf("the books: %+v, %v", f, err)
	}
}

// As a payer can time it, who sends his own authorization and shows it to us when he sees that it was booked.
func TestReconciler_WhatIsClaimedBeforeTheLookAfterItsBookingLeavesSuspense(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := b.receive(t, 500)
	b.look(t)
	pgtest.Shift(t, b.db, time.Hour)
	b.look(t)
	for range 5 {
		if b.look(t); suspense(t, b) != "0" {
			break
		}
	}
	b.prove(t, b.claim(t, in.Other, 500), in)
	b.last(t, time.Hour)
	b.want(t, "claimed at once", false)
	if got := suspense(t, b); got != "0" {
		t.Errorf("in suspense are %s, want none", got)
	}
}

func TestStore_Open_NamesWhatDustCannotHide(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.paid(t, 900)
	b.spend(t, common.Address{19: 9}, 7)
	b.last(t, time.Hour)
	b.receive(t, 1)
	b.last(t, time.Hour)
	all, err := Store{}.Open(t.Context(), b.db, 1)
	if err != nil || len(all) != 1 || all[0].Kind != Outflow {
		t.Errorf("the first of %v is %+v, %v; want what went out", b.open(t), all, err)
	}
}

func TestReconciler_WhatIsOnItsWayToItsRowIsNoDifference(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.claim(t, common.Address{}, 700) // who mints pays
	in := b.receive(t, 700)
	b.last(t, time.Hour)
	b.want(t, "paid and not proved yet", false)
	b.prove(t, id, in)
	b.last(t, time.Hour)
	b.want(t, "proved", false)
	if len(b.told) != 0 || suspense(t, b) != "0" {
		t.Errorf("told is %+v, in suspense are %s", b.told, suspense(t, b))
	}
}

// A clock that is put forward by hours makes old what was seen a moment ago.
func TestReconciler_NothingIsDifferentBecauseTheClockWasPutForward(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := b.receive(t, 700)
	b.look(t)
	pgtest.Shift(t, b.db, 48*time.Hour)
	b.look(t)
	b.prove(t, b.claim(t, in.Other, 700), in)
	b.look(t)
	b.want(t, "its row came late", false)
	if len(b.told) != 0 {
		t.Errorf("told is %+v", b.told)
	}
}

func TestReconciler_EachKindIsNamedClosesAndHeals(t *testing.T) {
	t.Parallel()
	stranger := common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC")
	tests := map[string]struct {
		kinds  []Kind
		breaks func(t *testing.T, b *bench) (heal func())
	}{
		"money that went by nobody's row": {[]Kind{Outflow}, func(t *testing.T, b *bench) func() {
			id, _ := b.paid(t, 900)
			out := b.spend(t, stranger, 900)
			return func() { b.refunded(t, id, out) }
		}},
		"a final row without its log": {[]Kind{Row}, func(t *testing.T, b *bench) func() {
			id := b.claim(t, stranger, 900)
			_, in := b.paid(t, 800)
			in.Transaction[0] ^= 1
			b.prove(t, id, in)
			return func() { b.exec(t, `UPDATE calls SET payment_state = 'lost' WHERE id = $1`, id) }
		}},
		"a row with another amount than its log": {[]Kind{Row}, func(t *testing.T, b *bench) func() {
			id, _ := b.paid(t, 900)
			b.look(t)
			b.exec(t, `UPDATE calls SET amount = 901 WHERE id = $1`, id)
			return func() { b.exec(t, `UPDATE calls SET amount = 900 WHERE id = $1`, id) }
		}},
		"a log that the node leaves out": {[]Kind{Wallet}, func(t *testing.T, b *bench) func() {
			in := b.receive(t, 900)
			b.node.hides[in.Transaction] = true
			return func() {
				delete(b.node.hides, in.Transaction)
				b.prove(t, b.claim(t, in.Other, 900), in)
			}
		}},
		"books that miss a row": {[]Kind{Ledger}, func(t *testing.T, b *bench) func() {
			b.exec(t, `ALTER TABLE calls DISABLE TRIGGER calls_posted`)
			id, _ := b.paid(t, 900)
			b.exec(t, `ALTER TABLE calls ENABLE TRIGGER calls_posted`)
			return func() { b.exec(t, `SELECT ledger_post($1)`, id) }
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			heal := tt.breaks(t, b)
			b.last(t, time.Minute)
			b.want(t, "after a minute", false)
			b.last(t, 5*time.Minute)
			b.want(t, "after six minutes", false, tt.kinds...)
			b.last(t, 15*time.Minute)
			b.want(t, "after twenty", true, tt.kinds...)
			heal()
			b.look(t)
			b.want(t, "healed", false)
			b.last(t, time.Hour)
			b.want(t, "an hour later", false)
			if n := len(b.told); n != 3 || !b.told[2].Over || b.told[1].ClosedAt.IsZero() {
				t.Errorf("told is %+v; want that it is different, that it closes, and its end", b.told)
			}
		})
	}
}

func TestReconciler_AWalletBelowWhatItOwesClosesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.short = "it owes 5 and holds 4"
	b.look(t)
	b.want(t, "short", true, Liabilities)
	b.short = ""
	b.look(t)
	b.want(t, "enough", false)
}

// Anybody can have the token log that a treasury has sent nothing, and a treasury that pays itself moves nothing.
func TestTransfers_WhatMovesNothingIsNone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.paid(t, 900)
	head, err := b.chain.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.authorize(t, b.key.Treasury, 300)
	b.authorize(t, common.Address{19: 9}, 0)
	b.mine(t, depth)
	all, _, err := b.chain.Transfers(t.Context(), b.key.Asset, b.key.Treasury, head.Number+1, head.Number+depth)
	if err != nil || len(all) != 0 {
		t.Errorf("transfers %+v, %v; want none", all, err)
	}
	b.last(t, time.Hour)
	b.want(t, "an hour later", false)
}

// What was paid back between a backup and its restore has no row, and never will.
func TestReconciler_AfterARestoreAWalletBeginsAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.paid(t, 900)
	b.spend(t, common.Address{19: 9}, 400)
	b.last(t, time.Hour)
	b.want(t, "restored, and not known to be", true, Outflow)
	now, err := postgres.MarketNow(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Shift(t, b.db, time.Hour)
	b.r.RestoredAt = now.Add(time.Minute)
	b.look(t)
	b.want(t, "begun anew", false)
	id, _ := b.paid(t, 700)
	out := b.spend(t, common.Address{19: 9}, 700)
	b.refunded(t, id, out)
	b.last(t, time.Hour)
	b.want(t, "an hour later", false)
	if s := b.state(t); s.OpeningBalance.String() != "500" || s.Held.String() != "500" || b.transfers(t) != 2 {
		t.Errorf("%+v with %d transfers; want it opened with 500, and the two since", s, b.transfers(t))
	}
}

// A treasury's key is replaced, and its money is moved to the new one.
func TestReconciler_WhatMovesBetweenOurTreasuriesIsDifferentWhereItWentUntilItIsBooked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := common.Address{19: 9}
	b.r.Networks[0].Treasuries = append(b.r.Networks[0].Treasuries, other)
	b.paid(t, 900)
	b.last(t, time.Hour)
	moved := b.spend(t, other, 400)
	b.last(t, time.Hour)
	b.want(t, "moved", true, Outflow)
	e := ledger.Entry{Network: b.key.Network, Asset: b.key.Asset, Treasury: b.key.Treasury, To: other, Kind: ledger.Moved, Amount: moved.Amount, Reason: "a new key", By: "the test",
		Transfer: ledger.Transfer{Transaction: moved.Transaction, LogIndex: moved.LogIndex, Block: moved.BlockNumber}}
	if _, err := (ledger.Store{}).Post(t.Context(), b.db, e); err != nil {
		t.Fatal(err)
	}
	b.look(t)
	b.want(t, "booked", false)
	b.last(t, time.Hour)
	b.want(t, "an hour later", false)
	all, err := Store{}.Wallets(t.Context(), b.db)
	if err != nil || len(all) != 2 || suspense(t, b) != "0" {
		t.Fatalf("%+v, %v, in suspense %s; want two wallets, and nothing", all, err, suspense(t, b))
	}
	for _, w := range all {
		if w.Unmatched != 0 {
			t.Errorf("%s has %d transfers that nobody explains", w.Treasury, w.Unmatched)
		}
	}
}
