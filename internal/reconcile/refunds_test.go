package reconcile

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
)

const (
	sentSQL = `
WITH sent AS (
	INSERT INTO refunds (call_id, network, asset, payer, amount, authorizer, nonce, payment_nonce, payment_transaction, state)
	SELECT id, network, asset, $2, amount, treasury, nonce, nonce, transaction, 'sent' FROM calls WHERE id = $1
)
INSERT INTO refund_signatures (call_id, valid_before, signature) VALUES ($1, 1800000000, decode(repeat('ab', 65), 'hex'))`
	arrivedSQL = `UPDATE refunds SET state = 'confirmed', transaction = $2, log_index = $3, block_number = $4, confirmed_at = market_now() WHERE call_id = $1`
)

func (b *bench) sent(t *testing.T, id call.ID, to common.Address) {
	t.Helper()
	b.exec(t, sentSQL, id, to[:])
}

// B116, where the money has left and the write that says so was lost: the refund is not another one, and nothing differs until it is confirmed.
func TestReconciler_ARefundThatLeftAndIsNotConfirmedYetIsNoDifference(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	to := common.Address{19: 9}
	id, _ := b.paid(t, 900)
	b.sent(t, id, to)
	out := b.spend(t, to, 900)
	b.last(t, 24*time.Hour)
	b.want(t, "left", false)
	b.exec(t, arrivedSQL, id, out.Transaction[:], out.LogIndex, out.BlockNumber)
	b.last(t, time.Hour)
	b.want(t, "confirmed", false)
	if s := b.state(t); s.Unmatched != 0 {
		t.Errorf("%d transfers have no row", s.Unmatched)
	}
}

// B115, where two refunds of one payment have left all the same, by whatever hand: the second one is nobody's.
func TestReconciler_OfTwoRefundsOfOnePaymentTheSecondIsDifferent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	to := common.Address{19: 9}
	id, _ := b.paid(t, 900)
	b.paid(t, 900)
	b.sent(t, id, to)
	first := b.spend(t, to, 900)
	b.spend(t, to, 900)
	b.exec(t, arrivedSQL, id, first.Transaction[:], first.LogIndex, first.BlockNumber)
	b.last(t, time.Hour)
	b.want(t, "twice", true, Outflow)
}
