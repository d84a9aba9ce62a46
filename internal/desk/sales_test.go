package desk

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"

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
	if a := ask(t, g.desk(t, func(c *Config) { c.SettleTime = 2 * time.Second })+"/settle", body); a.code() != "settlement_pending" {
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

func upfront(o object) {
	o.at("paymentRequirements")["extra"] = object{"name": devnet.TokenName, "version": devnet.TokenVersion, "paymentFlow": "upfront"}
}

// A seller in the flow upfront asks for a settlement and then works, as often as the buyer sends its payment.
func TestDesk_Settle_AnUpfrontSellerSellsOnceForAPayment(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	for _, version := range versions {
		s := g.authorize(t, nil)
		body := g.body(version, s, upfront)
		g.Pause()
		if a := ask(t, g.desk(t, func(c *Config) { c.SettleTime = 2 * time.Second })+"/settle", body); a.code() != "settlement_pending" {
			t.Errorf("v%d, while nothing is mined: %s, want settlement_pending", version, a.raw)
		}
		g.Resume()
		sent := g.wantSettled(t, version, s, ask(t, url+"/settle", body))
		wantDuplicate := func(when string) {
			t.Helper()
			if a := ask(t, url+"/settle", body); a.status != http.StatusOK || a.code() != "duplicate_settlement" || a.Transaction != sent {
				t.Errorf("v%d, %s: %d %s, want duplicate_settlement with %s", version, when, a.status, a.raw, sent)
			}
		}
		wantDuplicate("again")
		pgtest.Shift(t, g.db, 25*time.Hour)
		for more := true; more; {
			var err error
			if more, err = (Sales{}).Forget(t.Context(), g.db); err != nil {
				t.Fatal(err)
			}
		}
		wantDuplicate("a day later")
	}
}

func aPayment(n byte) chain.Signed {
	return chain.Signed{Asset: devnet.TokenAddress(), Authorization: chain.Authorization{From: common.Address{n}, Nonce: common.Hash{n}}}
}

func TestSales_Settled_OfManyAtOnceOneIsTheFirst(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for i, tt := range []struct {
		verified int
		upfront  bool
		want     int64
	}{{0, false, 10}, {1, false, 10}, {2, false, 1}, {3, false, 1}, {0, true, 1}, {1, true, 1}} {
		s := aPayment(byte(i + 1))
		for range tt.verified {
			if err := (Sales{}).Verified(t.Context(), db, devnet.NetworkID, s); err != nil {
				t.Fatal(err)
			}
		}
		var told atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if settled(t, db, s, tt.upfront) {
					told.Add(1)
				}
			})
		}
		wg.Wait()
		if got := told.Load(); got != tt.want {
			t.Errorf("verified %d times, upfront %v: %d are told yes, want %d", tt.verified, tt.upfront, got, tt.want)
		}
	}
}

func settled(t *testing.T, db *pgxpool.Pool, s chain.Signed, upfront bool) bool {
	t.Helper()
	may, err := Sales{}.Settled(t.Context(), db, devnet.NetworkID, s, upfront)
	if err != nil {
		t.Error(err)
	}
	return may
}

// A seller can have routes of both flows, and a buyer shows one payment to both.
func TestSales_Settled_OneOfTwoFlowsSells(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for i, order := range [][]bool{{true, false}, {false, true}} {
		s := aPayment(byte(i + 1))
		if err := (Sales{}).Verified(t.Context(), db, devnet.NetworkID, s); err != nil {
			t.Fatal(err)
		}
		if first, second := settled(t, db, s, order[0]), settled(t, db, s, order[1]); !first || second {
			t.Errorf("upfront %v: told yes %v and then %v, want the first alone", order, first, second)
		}
	}
}

func TestSales_Forget_KeepsWhatSettledAndWhatIsYoungerThanADay(t *testing.T) {
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
	settled(t, db, aPayment(3), true)
	settled(t, db, aPayment(4), false)
	pgtest.Shift(t, db, 23*time.Hour)
	verify(2)
	if more, err := (Sales{}).Forget(t.Context(), db); more || err != nil || count() != 4 {
		t.Errorf("within a day: %d rows, more %v, %v, want all", count(), more, err)
	}
	pgtest.Shift(t, db, 2*time.Hour)
	if more, err := (Sales{}).Forget(t.Context(), db); more || err != nil || count() != 3 {
		t.Errorf("a day later: %d rows, more %v, %v, want the one that was touched and those that settled", count(), more, err)
	}
	for _, n := range []byte{3, 4} {
		if settled(t, db, aPayment(n), true) {
			t.Errorf("payment %d, which settled long ago, is sold for once more", n)
		}
	}
}
