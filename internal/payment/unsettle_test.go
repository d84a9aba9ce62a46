package payment

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres/pgtest"
)

func TestStore_Unsettle_OnlyTheOwnerMovesACallThatIsNotSettled(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for n, from := range call.States() {
		payment := s.claim(t)
		id := s.take(t, payment)
		s.move(t, id, from, common.Hash{byte(n + 1)})

		err := Store{}.Unsettle(t.Context(), s.db, id, uuid.Must(uuid.NewV7()), call.Rejected, "", common.Hash{})
		if !errors.Is(err, ErrMoved) {
			t.Errorf("%s: somebody else moves it: %v", from, err)
		}
		if found := s.find(t, payment); found.State != from || found.LeaseLeft != payment.Lease {
			t.Errorf("%s: somebody else moved it to %s, leased for %s", from, found.State, found.LeaseLeft)
		}
		err = Store{}.Unsettle(t.Context(), s.db, id, payment.Owner, call.Rejected, "", common.Hash{})
		want, moves := from, from == call.Settling || from == call.Unknown // a call that is unclear may have been taken over
		if moves {
			want = call.Rejected
		}
		if (err == nil) != moves || (err != nil && !errors.Is(err, ErrMoved)) {
			t.Errorf("%s: its owner moves it: %v", from, err)
		}
		if found := s.find(t, payment); found.State != want || (found.LeaseLeft <= 0) != moves {
			t.Errorf("%s: its owner moved it to %s, leased for %s; want %s, and the lease let go where it moved", from, found.State, found.LeaseLeft, want)
		}
	}
}

func TestStore_Unsettle_GoesWhereTheMovesLeadAndNowhereElse(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, to := range []call.State{
		call.StateReleased, call.Unknown, call.Rejected, call.Settling, call.StateServed, call.StateRefused, call.StateFailed,
		call.StateCooldownRefused, "lost", "",
	} {
		payment := s.claim(t)
		id := s.take(t, payment)
		err := Store{}.Unsettle(t.Context(), s.db, id, payment.Owner, to, "because", common.Hash{})
		if want := call.CanMove(call.Settling, to); (err == nil) != want {
			t.Errorf("to %q: %v, want it to go there: %v", to, err, want)
		}
		want := call.Settling
		if err == nil {
			want = to
		}
		if found := s.find(t, payment); found.State != want {
			t.Errorf("to %q: the call is %s, want %s", to, found.State, want)
		}
	}
}

func TestStore_Unsettle_OfManyAtOnceOneMoves(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	payment := s.claim(t)
	id := s.take(t, payment)
	var (
		wg    sync.WaitGroup
		moved atomic.Int32
	)
	for range 20 {
		wg.Go(func() {
			err := Store{}.Unsettle(t.Context(), s.db, id, payment.Owner, call.Rejected, "", common.Hash{})
			switch {
			case err == nil:
				moved.Add(1)
			case !errors.Is(err, ErrMoved):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if moved.Load() != 1 {
		t.Errorf("%d writers moved the call, want 1", moved.Load())
	}
}

func TestStore_Unsettle_KeepsTheTransactionThatWasSent(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	payment := s.claim(t)
	id := s.take(t, payment)
	first, second := common.Hash{1}, common.Hash{2}
	for _, tt := range []struct {
		when       string
		sent, want common.Hash
	}{
		{"one was sent", first, first},
		{"none was sent this time", common.Hash{}, first},
		{"another one was sent", second, second},
	} {
		if err := (Store{}).Unsettle(t.Context(), s.db, id, payment.Owner, call.Unknown, "pending", tt.sent); err != nil {
			t.Fatal(err)
		}
		var kept []byte
		if err := s.db.QueryRow(t.Context(), `SELECT sent_transaction FROM calls WHERE id = $1`, id).Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if got := common.BytesToHash(kept); got != tt.want {
			t.Errorf("%s: the call keeps %s, want %s", tt.when, got, tt.want)
		}
	}
}

func TestStore_Payer_IsKnownForAWeekByAProvedPayment(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	payment := s.claim(t)
	id := s.take(t, payment)
	known := func(when string, payer common.Address, want bool) {
		t.Helper()
		got, err := Store{}.Payer(t.Context(), s.db, Identity{Network: payment.Network, Asset: payment.Signed.Asset, Payer: payer, Nonce: payment.Signed.Nonce})
		if err != nil || !reflect.DeepEqual(got, Payer{Known: want}) {
			t.Errorf("%s: %+v, %v; want known %v and nothing undone", when, got, err, want)
		}
	}
	payer := payment.Signed.From
	known("claimed", payer, false)
	s.move(t, id, call.Unknown, common.Hash{})
	known("unproved", payer, false)
	s.move(t, id, call.StateFailed, common.Hash{1})
	known("proved, whatever became of the call", payer, true)
	other := payer
	other[0]++
	known("another payer", other, false)

	pgtest.Shift(t, s.db, 7*24*time.Hour-time.Microsecond)
	known("just inside the week", payer, true)
	pgtest.Shift(t, s.db, time.Microsecond)
	known("exactly a week later", payer, false)
	pgtest.Shift(t, s.db, time.Microsecond)
	known("just outside the week", payer, false)
}

func TestStore_Payer_CountsWhatTheChainTookBack(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	sent := common.Hash{7}
	payer := s.claim(t).Signed.From
	count := func(when string, undone, broke int) {
		t.Helper()
		got, err := Store{}.Payer(t.Context(), s.db, Identity{Payer: payer})
		if err != nil || !reflect.DeepEqual(got, Payer{Undone: undone, Broke: broke}) {
			t.Errorf("%s: %+v, %v; want %d undone and %d without funds", when, got, err, undone, broke)
		}
	}
	for name, tt := range map[string]struct {
		to   call.State
		why  Code
		sent common.Hash
	}{
		"never sent":                                 {call.StateReleased, CodeSignature, common.Hash{}},
		"rejected and never sent":                    {call.Rejected, CodeSignature, common.Hash{}},
		"rejected and never sent, without funds":     {call.Rejected, CodeFunds, common.Hash{}},
		"sent and unclear":                           {call.Unknown, CodeFailed, sent},
		"sent, and used by a transfer of another's":  {call.Rejected, "invalid_exact_evm_nonce_already_used", sent},
		"sent and unclear, where there are no funds": {call.Unknown, CodeFunds, sent},
	} {
		c := s.claim(t)
		if err := (Store{}).Unsettle(t.Context(), s.db, s.take(t, c), c.Owner, tt.to, string(tt.why), tt.sent); err != nil {
			t.Fatal(err)
		}
		count(name, 0, 0)
	}
	for n, why := range []Code{CodeFailed, CodeSignature, CodeFunds} {
		c := s.claim(t)
		id := s.take(t, c)
		if err := (Store{}).Unsettle(t.Context(), s.db, id, c.Owner, call.Rejected, string(why), sent); err != nil {
			t.Fatal(err)
		}
		undone, broke := min(n+1, 2), max(n-1, 0)
		count("taken back", undone, broke)
		s.move(t, id, call.StateRefused, common.Hash{})
		count("taken back and over", undone, broke)
	}
	pgtest.Shift(t, s.db, PayerWindow-time.Microsecond)
	count("just inside the day", 2, 1)
	pgtest.Shift(t, s.db, time.Microsecond)
	count("a day later", 0, 0)
}

func TestStore_Payer_ListsWhatMayStillTakeMoney(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	own := s.claim(t)
	s.take(t, own)
	var want []Open
	for n, state := range call.States() {
		c := s.claim(t)
		s.move(t, s.take(t, c), state, common.Hash{byte(n + 1)})
		if state == call.Settling || state == call.Unknown {
			want = append(want, Open{Nonce: c.Signed.Nonce, Amount: c.Signed.Value})
		}
	}
	for _, state := range []call.State{call.Asked, call.StateServed, call.StateFailed} {
		c := s.claim(t)
		s.believe(t, s.take(t, c), state, "sent")
		want = append(want, Open{Nonce: c.Signed.Nonce, Amount: c.Signed.Value})
		s.believe(t, s.take(t, s.claim(t)), state, "lost")
	}
	order := func(a, b Open) int { return a.Nonce.Cmp(b.Nonce) }
	for name, tt := range map[string]struct {
		change func(*Identity)
		want   []Open
	}{
		"beside itself":   {func(*Identity) {}, want},
		"another":         {func(i *Identity) { i.Nonce = common.Hash{1} }, append([]Open{{own.Signed.Nonce, own.Signed.Value}}, want...)},
		"another network": {func(i *Identity) { i.Network = "eip155:1" }, nil},
		"another asset":   {func(i *Identity) { i.Asset[0]++ }, nil},
		"another's":       {func(i *Identity) { i.Payer[0]++ }, nil},
	} {
		i := own.Identity()
		tt.change(&i)
		got, err := Store{}.Payer(t.Context(), s.db, i)
		slices.SortFunc(got.Open, order)
		slices.SortFunc(tt.want, order)
		if err != nil || !slices.Equal(texts(got.Open), texts(tt.want)) {
			t.Errorf("%s: %v, %v, want %v", name, texts(got.Open), err, texts(tt.want))
		}
	}
}

func texts(open []Open) (all []string) {
	for _, o := range open {
		all = append(all, o.Nonce.Hex()+" "+o.Amount.String())
	}
	return all
}
