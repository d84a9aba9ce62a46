package hostiletest

import (
	"testing"

	"market/internal/app/apptest"
	"market/internal/delivery"
)

// balanced says whether the chain has moved for the row what its calls cost, and nothing else.
func (p *played) balanced(t testing.TB, w *apptest.World, in, out []apptest.Transfer) bool {
	t.Helper()
	paid, back, ok := 0, 0, true
	for _, m := range in {
		if m.From == p.payer.Address() {
			paid++
		}
	}
	for _, m := range out {
		if m.To == p.payer.Address() {
			back++
		}
	}
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

const openSQL = `
SELECT (SELECT count(*) FROM calls WHERE state IN ('settling', 'unknown', 'rejected', 'expired', 'settled', 'asked') OR payment_state IN ('sent', 'mined'))
     + (SELECT count(*) FROM refunds WHERE state <> 'confirmed')`

// settled waits until every call and every refund has ended, and sees that the books add up.
func settled(t testing.TB, w *apptest.World) {
	t.Helper()
	apptest.Eventually(t, "every call and every refund has ended", func() bool {
		if err := w.Chain.Mine(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		var open int
		if err := w.DB.QueryRow(t.Context(), openSQL).Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	})
	figures, err := delivery.PromiseOne(t.Context(), w.DB)
	if err != nil {
		t.Fatal(err)
	}
	if !figures.Balanced() {
		t.Errorf("the books do not balance: %s", figures)
	}
}
