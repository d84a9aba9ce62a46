package payout

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/shopspring/decimal"

	"market/internal/chain"
	"market/internal/plan"
)

// maker pays from four and from two cents on, and never less than a cent.
func (s shelf) maker(t *testing.T) *Maker {
	t.Helper()
	of := network
	of.FloorUSD = decimal.RequireFromString("0.01")
	key := treasury(t)
	rail := Rail{Network: of, Treasuries: map[common.Address]chain.Key{key.Address(): key}, Ours: []common.Address{key.Address()}}
	return NewMaker(s.db, map[string]Rail{network.ID: rail}, plan.Table{
		{Name: "small", Title: "Small", Limits: plan.Limits{PayoutThreshold: 4}},
		{Name: "large", Title: "Large", Limits: plan.Limits{PayoutThreshold: 2}},
	})
}

func TestMaker_Pass_PaysFromTheThresholdOfTheAccountsPlanOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		plan  string
		calls int // of 0.975 cents each
		paid  bool
	}{
		"one call below the threshold": {"small", 4, false},
		"above it":                     {"small", 5, true},
		"below that of a larger plan":  {"large", 2, false},
		"above that of a larger plan":  {"large", 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t).paidTo(t, payee)
			s.exec(t, `UPDATE accounts SET plan = $1`, tt.plan)
			s.earn(t, tt.calls)
			for range 3 {
				s.served(t) // earned, and not final
			}
			m := s.maker(t)
			for range 2 {
				if err := m.Pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			want := int64(0)
			if tt.paid {
				want = int64(tt.calls) * share
			}
			if got := s.number(t, `SELECT coalesce(sum(amount), 0) FROM payouts`); got != want {
				t.Errorf("PayoutThreshold of the plan %s, %d final calls: %d is paid, want %d", tt.plan, tt.calls, got, want)
			}
		})
	}
}

func TestMaker_PayNow_PaysAnyAmountFromTheFloorOn(t *testing.T) {
	t.Parallel()
	s := newShelf(t).paidTo(t, payee)
	s.earn(t, 1)
	m := s.maker(t)
	if _, err := m.PayNow(t.Context(), s.db, s.purse.Account, network.ID, s.purse.Asset, "the provider"); !errors.Is(err, ErrTooLittle) {
		t.Errorf("below the floor: %v, want %v", err, ErrTooLittle)
	}
	s.earn(t, 1)
	made, err := m.PayNow(t.Context(), s.db, s.purse.Account, network.ID, s.purse.Asset, "the provider")
	if err != nil || len(made) != 1 || made[0].MadeBy != "the provider" {
		t.Errorf("made %+v, %v; want one", made, err)
	}
	for _, elsewhere := range []string{"eip155:1", ""} {
		if _, err := m.PayNow(t.Context(), s.db, s.purse.Account, elsewhere, s.purse.Asset, "the provider"); !errors.Is(err, ErrNone) {
			t.Errorf("on the network %q: %v, want %v", elsewhere, err, ErrNone)
		}
	}
}
