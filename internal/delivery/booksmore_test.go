package delivery

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/ledger"
	"market/internal/money"
	"market/internal/payout"
)

// What moves money of a history beside its calls.
type beside struct {
	sellers           []uuid.UUID
	drawn             map[*booked]uuid.UUID // by the payout that it is in
	payouts           []payout.Payout       // that have not ended
	topped, withdrawn money.Signed
	paidOut           money.Signed
	unexplained       money.Signed
}

const (
	payeeSQL   = `INSERT INTO payout_addresses (account_id, network, address, effective_at) VALUES ($1, $2, $3, market_now())`
	arrivesSQL = `UPDATE payouts SET state = 'confirmed', transaction = $2, log_index = $3, block_number = $4, confirmed_at = market_now() WHERE id = $1`
)

// pays is where a new seller is paid.
func (h *history) pays(t *testing.T) {
	t.Helper()
	h.sellers = append(h.sellers, h.seller)
	if _, err := h.db.Exec(t.Context(), payeeSQL, h.seller, network, common.Address{0x5e}.Bytes()); err != nil {
		t.Fatal(err)
	}
}

func (h *history) entry(kind ledger.EntryKind, amount money.Amount) ledger.Entry {
	p := h.proof()
	return ledger.Entry{Network: network, Asset: common.Address{0xa5}, Treasury: common.Address{0x1e}, Kind: kind, Amount: amount, Transfer: transferOf(p), Reason: "a history", By: "a test"}
}

// enter has the operator, or a stranger, move money of a treasury, and says what was done.
func (h *history) enter(t *testing.T) string {
	t.Helper()
	amount := money.FromUnits(1 + h.rand.Uint64N(1_000_000))
	kind := []ledger.EntryKind{ledger.TopUp, ledger.FeeWithdrawal, ledger.Unexplained}[h.rand.IntN(3)]
	_, err := ledger.Store{}.Post(t.Context(), h.db, h.entry(kind, amount))
	if kind == ledger.FeeWithdrawal && errors.Is(err, ledger.ErrAboveFees) {
		return "more is refused than the fees"
	}
	h.must(t, err)
	switch kind {
	case ledger.TopUp:
		h.topped = h.topped.Add(amount.Debit())
	case ledger.FeeWithdrawal:
		h.withdrawn = h.withdrawn.Add(amount.Debit())
	default:
		h.unexplained = h.unexplained.Add(amount.Debit())
	}
	return string(kind)
}

// draw makes a payout of what a seller has earned for good, or brings one to its end.
func (h *history) draw(t *testing.T) string {
	t.Helper()
	if len(h.payouts) > 0 && h.rand.IntN(2) == 0 {
		p := h.payouts[0]
		h.payouts = h.payouts[1:]
		if h.rand.IntN(4) == 0 {
			h.must(t, pgx.BeginFunc(t.Context(), h.db, func(tx pgx.Tx) error { return payout.Store{}.Cancel(t.Context(), tx, p.ID) }))
			for b, of := range h.drawn {
				if of == p.ID {
					delete(h.drawn, b)
				}
			}
			return "a payout is cancelled"
		}
		by := h.proof()
		if _, err := h.db.Exec(t.Context(), arrivesSQL, p.ID, by.Transaction[:], int(by.LogIndex), int64(by.BlockNumber)); err != nil { //nolint:gosec // made above
			t.Fatal(err)
		}
		h.paidOut = h.paidOut.Add(p.Amount.Debit())
		return "a payout arrives"
	}
	seller := h.sellers[h.rand.IntN(len(h.sellers))]
	var (
		earned money.Signed
		taken  []*booked
	)
	for _, b := range h.calls {
		if share, _ := b.price.Split(b.feeBPS); b.served && b.seller == seller && b.payment == paymentFinal && h.drawn[b] == (uuid.UUID{}) && !share.IsZero() {
			earned, taken = earned.Add(share.Debit()), append(taken, b)
		}
	}
	p, err := payout.Store{}.Make(t.Context(), h.db, payout.Purse{Account: seller, Network: network, Asset: common.Address{0xa5}, Treasury: common.Address{0x1e}},
		84532, money.FromUnits(1), nil, "a test")
	switch {
	case errors.Is(err, payout.ErrOpen):
		return "a payout is open"
	case errors.Is(err, payout.ErrTooLittle):
		if earned.Sign() != 0 {
			t.Errorf("nothing is paid out, and %s was earned", earned)
		}
		return "nothing is to be paid out"
	}
	h.must(t, err)
	if p.Amount.Debit().Cmp(earned) != 0 {
		t.Errorf("a payout of %s is made, and %s was earned", p.Amount, earned)
	}
	for _, b := range taken {
		h.drawn[b] = p.ID
	}
	h.payouts = append(h.payouts, p)
	return "a payout is made"
}
