package delivery

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
)

// signing is a path whose treasury signs receipts.
func signing(t *testing.T) (*Path, common.Address) {
	t.Helper()
	raw, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := chain.ParseKey(hex.EncodeToString(crypto.FromECDSA(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return NewPath(Config{Notary: payment.NewNotary(key)}), key.Address()
}

// Nobody signs that a transaction paid for a call which the chain does not show.
func TestReceipt_OfAServedCallIsThereWhileTheChainShowsThePayment(t *testing.T) {
	t.Parallel()
	p, treasury := signing(t)
	served := Record{Network: network, Outcome: call.Served, Treasury: treasury, Transaction: common.Hash{7}, Proved: true, AskedAt: time.Unix(1, 0)}
	dropped, takenBack := served, served
	dropped.Dropped, takenBack.TakenBack = true, true
	for name, tt := range map[string]struct {
		record Record
		signed bool
	}{"shown": {served, true}, "dropped": {dropped, false}, "taken back": {takenBack, false}} {
		if got := p.Receipt(tt.record); (got != nil) != tt.signed {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A transaction that was sent and undone moved nothing, and nothing is signed that says it did.
func TestReceipt_NamesATransactionOnlyWhereItMovedThePayment(t *testing.T) {
	t.Parallel()
	p, treasury := signing(t)
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
		signed := p.Receipt(Record{Network: network, Outcome: call.Refused, Reason: tt.reason, Treasury: treasury, Transaction: sent, Proved: tt.proved})
		if signed == nil {
			t.Fatalf("%s: no receipt", tt.reason)
		}
		if got := signed.Payload.(payment.OutcomeReceipt); got.Transaction != tt.want {
			t.Errorf("%s: the receipt names %q, want %q", tt.reason, got.Transaction, tt.want)
		}
	}
}
