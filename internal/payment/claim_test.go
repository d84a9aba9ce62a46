package payment

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/postgres/pgtest"
)

func TestStore_Claim_OfManyAtOnceOneGetsThePayment(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	payment := s.claim(t)
	const racers = 20
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		winner []call.ID
	)
	for i := range racers {
		wg.Go(func() {
			c := payment
			c.ID, c.Owner = call.NewID(), uuid.Must(uuid.NewV7())
			c.Fingerprint = Fingerprint{byte(i % 2)} // the same request or another, it makes no difference
			id, claimed, err := Store{}.Claim(t.Context(), s.db, c)
			if err != nil {
				t.Error(err)
			}
			if claimed {
				mu.Lock()
				defer mu.Unlock()
				winner = append(winner, id)
			}
		})
	}
	wg.Wait()
	if len(winner) != 1 {
		t.Fatalf("%d of %d claims got the payment, want 1", len(winner), racers)
	}
	if found := s.find(t, payment); found.ID != winner[0] || found.State != call.Settling {
		t.Errorf("the payment belongs to %s, %s; want %s, settling", found.ID, found.State, winner[0])
	}
}

func TestStore_Claim_AnotherIdentityIsAnotherPayment(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	payment := s.claim(t)
	s.take(t, payment)
	for name, change := range map[string]func(*Claim){
		"network": func(c *Claim) { c.Network = "eip155:8453" },
		"asset":   func(c *Claim) { c.Signed.Asset[0]++ },
		"payer":   func(c *Claim) { c.Signed.From[0]++ },
		"nonce":   func(c *Claim) { c.Signed.Nonce[0]++ },
	} {
		c := payment
		c.ID = call.NewID()
		change(&c)
		if _, err := (Store{}).Find(t.Context(), s.db, c.Identity()); !errors.Is(err, ErrUnclaimed) {
			t.Errorf("another %s: find says %v, want %v", name, err, ErrUnclaimed)
		}
		if id := s.take(t, c); id != c.ID {
			t.Errorf("another %s: claimed as %s, want %s", name, id, c.ID)
		}
	}
}

func TestStore_Claim_OnlyAReleasedPaymentIsFree(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for n, state := range call.States() {
		payment := s.claim(t)
		id := s.take(t, payment)
		s.move(t, id, state, [32]byte{byte(n + 1)})

		again := payment
		again.ID = call.NewID()
		got, claimed, err := Store{}.Claim(t.Context(), s.db, again)
		if err != nil {
			t.Fatal(err)
		}
		if want := state == call.StateReleased; claimed != want {
			t.Errorf("%s: claimed = %v, want %v", state, claimed, want)
		}
		want := state
		if claimed {
			want = call.Settling
			if got != id {
				t.Errorf("%s: claimed under %s, want the id that the call has, %s", state, got, id)
			}
		}
		if found := s.find(t, payment); found.ID != id || found.State != want {
			t.Errorf("%s: call is %s, %s; want %s, %s", state, found.ID, found.State, id, want)
		}
	}
}

func TestStore_Claim_AReleasedPaymentIsFreeForItsOwnRequestOnly(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	payment := s.claim(t)
	id := s.take(t, payment)
	s.release(t, id, payment)

	other := payment
	other.ID, other.Fingerprint = call.NewID(), Fingerprint{2}
	if _, claimed, err := (Store{}).Claim(t.Context(), s.db, other); err != nil || claimed {
		t.Errorf("another request: claimed = %v, %v; want it not", claimed, err)
	}
	if found := s.find(t, payment); found.State != call.StateReleased || found.Fingerprint != payment.Fingerprint {
		t.Errorf("after another request the call is %s with fingerprint %x", found.State, found.Fingerprint)
	}
	if got := s.take(t, payment); got != id {
		t.Errorf("the same request: claimed under %s, want %s", got, id)
	}
}

func TestStore_Claim_OfManyThatSendAReleasedPaymentAgainOneGetsIt(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	payment := s.claim(t)
	s.release(t, s.take(t, payment), payment)
	var (
		wg   sync.WaitGroup
		wins atomic.Int32
	)
	for range 20 {
		wg.Go(func() {
			c := payment
			c.ID, c.Owner = call.NewID(), uuid.Must(uuid.NewV7())
			_, claimed, err := Store{}.Claim(t.Context(), s.db, c)
			if err != nil {
				t.Error(err)
			}
			if claimed {
				wins.Add(1)
			}
		})
	}
	wg.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d claims got the payment, want 1", wins.Load())
	}
}

func TestStore_Claim_AReleasedPaymentIsTakenWithTheLeaseAndTheTermsOfNow(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first := s.claim(t)
	id := s.take(t, first)
	s.release(t, id, first)

	// A payer may sign two authorizations with one nonce, and the price may have changed between them.
	second := first
	second.ID, second.Owner, second.Lease = call.NewID(), uuid.Must(uuid.NewV7()), 45*time.Second
	second.Signed.Value, second.Signed.ValidAfter, second.Signed.ValidBefore = money.FromUnits(20_000), 5, first.Signed.ValidBefore+60
	second.Signed.To[0]++
	second.Signed.Signature = signature(t, 1)
	second.FeeBPS, second.Origin = 300, call.Unattributed
	const repriceSQL = `INSERT INTO endpoint_prices (endpoint_id, price_usd) VALUES ($1, 0.02) RETURNING revision`
	if err := s.db.QueryRow(t.Context(), repriceSQL, first.Endpoint).Scan(&second.PriceRevision); err != nil {
		t.Fatal(err)
	}
	if got := s.take(t, second); got != id {
		t.Fatalf("claimed under %s, want %s", got, id)
	}
	if err := (Store{}).Unsettle(t.Context(), s.db, id, first.Owner, call.Unknown, "", [32]byte{}); !errors.Is(err, ErrMoved) {
		t.Errorf("the first owner still moves it: %v", err)
	}
	if found := s.find(t, second); !found.Shown(second.Signed) || found.Same(first.Signed) || found.LeaseLeft != second.Lease {
		t.Errorf("found %+v for %s, want %+v for %s", found.Signed, found.LeaseLeft, second.Signed, second.Lease)
	}
	const keptSQL = `
SELECT treasury = $2 AND valid_after = $3 AND valid_before = $4 AND signature = $5 AND price_revision = $6 AND fee_bps = $7 AND origin = $8 AND why = ''
  FROM calls WHERE id = $1`
	a := second.Signed
	var kept bool
	if err := s.db.QueryRow(t.Context(), keptSQL, id, a.To[:], int64(a.ValidAfter), int64(a.ValidBefore), a.Signature.Bytes(),
		second.PriceRevision, second.FeeBPS, second.Origin).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	if !kept {
		t.Error("the call keeps terms of the authorization that was not used")
	}
}

// A contract wallet is known again by the very bytes that were claimed, of whatever length, and by no others.
func TestStore_Find_ReturnsTheSignatureThatWasClaimed(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, more := range []int{0, 1, chain.SignatureBytesMax - chain.SignatureBytesMin} {
		payment := s.claim(t)
		payment.Signed.Signature = signature(t, more)
		s.take(t, payment)
		found := s.find(t, payment)
		if !found.Shown(payment.Signed) {
			t.Errorf("%d bytes more than a key's: found %s, want the one that was claimed", more, found.Signed.Signature)
		}
		otherwise := payment.Signed
		otherwise.Signature = signature(t, 2)
		if found.Shown(otherwise) || !found.Same(otherwise) {
			t.Error("the same authorization with another signature is not told from the first")
		}
		dearer := payment.Signed
		dearer.Value = money.FromUnits(1)
		if found.Shown(dearer) {
			t.Error("another value under the same signature passes")
		}
	}
}

func TestStore_Find_TellsHowLongTheLeaseStillRuns(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	payment := s.claim(t)
	s.take(t, payment)
	pgtest.Shift(t, s.db, payment.Lease-time.Microsecond)
	if left := s.find(t, payment).LeaseLeft; left != time.Microsecond {
		t.Errorf("just before its end %s are left", left)
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	if left := s.find(t, payment).LeaseLeft; left > 0 {
		t.Errorf("at its end %s are left", left)
	}
}
