package delivery

import (
	"encoding/hex"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
)

// A transaction that was sent and undone moved nothing, and nothing is signed that says it did.
func TestReceipt_NamesATransactionOnlyWhereItMovedThePayment(t *testing.T) {
	t.Parallel()
	raw, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := chain.ParseKey(hex.EncodeToString(crypto.FromECDSA(raw)))
	if err != nil {
		t.Fatal(err)
	}
	p := NewPath(Config{Notary: payment.NewNotary(key)})
	sent := common.Hash{7}
	for _, tt := range []struct {
		reason call.Reason
		proved bool
		want   string
	}{
		{call.SettleRejected, false, ""},
		{call.SettleFailed, false, ""},
		{call.Upstream5xx, true, sent.Hex()},
	} {
		signed := p.Receipt(Record{Network: network, Outcome: call.Refused, Reason: tt.reason, Treasury: key.Address(), Transaction: sent, Proved: tt.proved})
		if signed == nil {
			t.Fatalf("%s: no receipt", tt.reason)
		}
		if got := signed.Payload.(payment.OutcomeReceipt); got.Transaction != tt.want {
			t.Errorf("%s: the receipt names %q, want %q", tt.reason, got.Transaction, tt.want)
		}
	}
}
