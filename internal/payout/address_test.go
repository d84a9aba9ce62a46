package payout

import (
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/postgres/pgtest"
)

func TestStore_SetAddress_AChangeWaitsADayAndTheOldOneHoldsUntilThen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	a, b, c := common.Address{1}, common.Address{2}, common.Address{3}
	if got := s.setAddress(t, a); got.Now != a || got.Next != (common.Address{}) {
		t.Errorf("the first address: %+v, want it to hold at once", got)
	}
	if got := s.setAddress(t, b); got.Now != a || got.Next != b || got.NextAt.IsZero() {
		t.Errorf("a change: %+v, want it to wait", got)
	}
	now := func(when string, want common.Address) {
		t.Helper()
		got, err := Store{}.effective(t.Context(), s.db, s.purse.Account, network.ID)
		if err != nil || got != want {
			t.Errorf("%s %s holds, %v; want %s", when, got, err, want)
		}
	}
	pgtest.Shift(t, s.db, addressWait-time.Microsecond)
	now("just before", a)
	pgtest.Shift(t, s.db, time.Microsecond)
	now("a day later", b)

	s.setAddress(t, c)
	pgtest.Shift(t, s.db, time.Hour)
	if got := s.setAddress(t, b); got.Now != b || got.Next != (common.Address{}) {
		t.Errorf("taken back: %+v, want no change to wait", got)
	}
	pgtest.Shift(t, s.db, addressWait)
	now("after what was taken back would have held", b)
	s.setAddress(t, c)
	pgtest.Shift(t, s.db, time.Hour)
	s.setAddress(t, a)
	pgtest.Shift(t, s.db, addressWait-time.Hour)
	now("when the first of two changes would have held", b)
	pgtest.Shift(t, s.db, time.Hour)
	now("when the second holds", a)
}

func TestStore_SetAddress_NobodyIsPaidToOneOfOurs(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	gas := common.Address{5}
	for _, address := range []common.Address{{}, gas, s.purse.Asset} {
		err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
			_, err := Store{}.SetAddress(t.Context(), tx, s.purse.Account, network.ID, address, []common.Address{gas, s.purse.Asset})
			return err
		})
		if !errors.Is(err, ErrNotPaid) {
			t.Errorf("%s: %v, want %v", address, err, ErrNotPaid)
		}
	}
	_, err := s.db.Exec(t.Context(), `UPDATE payout_addresses SET address = address`)
	if err != nil {
		wantConstraint(t, "history", err, "payout_addresses_only_added")
	} else {
		t.Error("history was changed")
	}
}
