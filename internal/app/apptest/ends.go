package apptest

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/delivery"
)

const openSQL = `
SELECT (SELECT count(*) FROM calls WHERE NOT review
          AND (state IN ('settling', 'unknown', 'rejected', 'expired', 'settled', 'asked') OR payment_state IN ('sent', 'mined')))
     + (SELECT count(*) FROM refunds WHERE state NOT IN ('confirmed', 'void'))`

// AwaitEnds waits until every call and every refund has ended but for the calls that wait for a person, and sees that the books add up.
func (w *World) AwaitEnds(t testing.TB) {
	t.Helper()
	Eventually(t, "every call and every refund has ended", func() bool {
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

// Between counts, of the treasury's transfers, those from a wallet and those back to it.
func Between(in, out []Transfer, wallet common.Address) (paid, back int) {
	for _, m := range in {
		if m.From == wallet {
			paid++
		}
	}
	for _, m := range out {
		if m.To == wallet {
			back++
		}
	}
	return paid, back
}
