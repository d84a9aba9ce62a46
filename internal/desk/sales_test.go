package desk

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
)

// A buyer sends one payment to the same seller five times at once. The official servers have verified all of them before the first settles.
func TestDesk_Settle_OfSeveralSalesThatAPaymentWasVerifiedForOneSettles(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	replicas := []string{g.desk(t, nil), g.desk(t, nil)}
	for _, version := range versions {
		s := g.authorize(t, nil)
		body := g.body(version, s, nil)
		const sales = 5
		for i := range sales {
			if a := ask(t, replicas[i%2]+"/verify", body); !a.IsValid {
				t.Fatalf("v%d: verify: %s", version, a.raw)
			}
		}
		answers := make([]answer, sales)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = ask(t, replicas[i%2]+"/settle", body) })
		}
		wg.Wait()
		yes := 0
		for _, a := range answers {
			switch {
			case a.Success:
				yes++
				g.wantSettled(t, version, s, a)
			case a.status != http.StatusOK || a.code() != "duplicate_settlement" || a.Transaction == "":
				t.Errorf("v%d: %d %s, want a yes or duplicate_settlement with the transaction", version, a.status, a.raw)
			}
		}
		if yes != 1 {
			t.Errorf("v%d: %d of %d sales are told yes for one payment", version, yes, sales)
		}
	}
	if n := g.transfers(t); n != len(versions) {
		t.Errorf("%d transfers, want one for each payment", n)
	}
}

func TestDesk_Settle_OneSaleThatWasVerifiedMayAskAgain(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	s := g.authorize(t, nil)
	body := g.body(payment.V2, s, nil)
	if a := ask(t, url+"/verify", body); !a.IsValid {
		t.Fatalf("verify: %s", a.raw)
	}
	g.Pause()
	if a := ask(t, g.desk(t, func(c *Config) { c.SettleTime = 300 * time.Millisecond })+"/settle", body); a.code() != "settlement_pending" {
		t.Errorf("while nothing is mined: %s, want settlement_pending", a.raw)
	}
	g.Resume()
	for range 3 {
		g.wantSettled(t, payment.V2, s, ask(t, url+"/settle", body))
	}
	if a := ask(t, url+"/verify", body); a.IsValid {
		t.Errorf("verified after it was settled: %s", a.raw)
	}
}

func aPayment(n byte) chain.Signed {
	return chain.Signed{Asset: devnet.TokenAddress(), Authorization: chain.Authorization{From: common.Address{n}, Nonce: common.Hash{n}}}
}

func TestSales_Settled_OfManyAtOnceOneIsTheFirst(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for verified, want := range map[int]int64{0: 10, 1: 10, 2: 1, 3: 1} {
		s := aPayment(byte(verified + 1))
		for range verified {
			if err := (Sales{}).Verified(t.Context(), db, devnet.NetworkID, s); err != nil {
				t.Fatal(err)
			}
		}
		var told atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				may, err := Sales{}.Settled(t.Context(), db, devnet.NetworkID, s)
				if err != nil {
					t.Error(err)
				}
				if may {
					told.Add(1)
				}
			})
		}
		wg.Wait()
		if got := told.Load(); got != want {
			t.Errorf("verified %d times: %d are told yes, want %d", verified, got, want)
		}
	}
}

func TestSales_Forget_KeepsWhatIsYoungerThanADay(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	count := func() (n int) {
		t.Helper()
		if err := db.QueryRow(t.Context(), `SELECT count(*) FROM facilitator_sales`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	verify := func(n byte) {
		t.Helper()
		if err := (Sales{}).Verified(t.Context(), db, devnet.NetworkID, aPayment(n)); err != nil {
			t.Fatal(err)
		}
	}
	verify(1)
	verify(2)
	pgtest.Shift(t, db, 23*time.Hour)
	verify(2)
	if more, err := (Sales{}).Forget(t.Context(), db); more || err != nil || count() != 2 {
		t.Errorf("within a day: %d rows, more %v, %v, want both", count(), more, err)
	}
	pgtest.Shift(t, db, 2*time.Hour)
	if more, err := (Sales{}).Forget(t.Context(), db); more || err != nil || count() != 1 {
		t.Errorf("a day later: %d rows, more %v, %v, want the one that was touched", count(), more, err)
	}
}
