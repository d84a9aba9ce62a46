package hostiletest

import (
	"testing"

	"market/internal/app/apptest"
)

// balanced says whether the chain has moved for the row what its calls cost, and nothing else.
func (p *played) balanced(t testing.TB, w *apptest.World, in, out []apptest.Transfer) bool {
	t.Helper()
	ok := true
	paid, back := apptest.Between(in, out, p.payer.Address())
	wantPaid, wantBack := len(p.calls), 0
	switch p.want.cost {
	case refunded:
		wantBack = wantPaid
	case notCharged:
		wantPaid = 0
	case charged:
	}
	if paid != wantPaid || back != wantBack {
		ok = false
		t.Errorf("%s: %d payments and %d refunds on the chain, want %d and %d", p.name, paid, back, wantPaid, wantBack)
	}
	left := uint64(len(p.calls)-wantPaid+wantBack) * apptest.PriceUnits //nolint:gosec // a small number
	if got := w.Balance(t, p.payer.Address()); got != left {
		ok = false
		t.Errorf("%s: the payer has %d units, want %d", p.name, got, left)
	}
	return ok
}
