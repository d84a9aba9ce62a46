package chain

import (
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"market/internal/money"
)

// Expect is the transfer that a proof has to show.
type Expect struct {
	Asset common.Address
	From  common.Address
	To    common.Address
	Value money.Amount
	Nonce common.Hash // of From's authorization
}

// Expect is what has to be on the chain once the authorization has paid.
func (s Signed) Expect() Expect {
	return Expect{Asset: s.Asset, From: s.From, To: s.To, Value: s.Value, Nonce: s.Nonce}
}

// ProofIn looks for the transfer in the logs of one receipt, in the receipt's order. It is the Transfer log that directly follows the
// authorization's AuthorizationUsed log, both emitted by the asset in the same transaction: a payer can sign two authorizations with
// one nonce, so the transfer of another value beside a used nonce is no payment, and a transfer elsewhere in the transaction is not
// this authorization's.
func ProofIn(logs []*types.Log, want Expect) (Proof, bool) {
	for i := 1; i < len(logs); i++ {
		used, transfer := logs[i-1], logs[i]
		if follows(used, transfer) && isUsed(used, want) && isTransfer(transfer, want) {
			return Proof{
				Transaction: transfer.TxHash,
				LogIndex:    transfer.Index,
				BlockNumber: transfer.BlockNumber,
				BlockHash:   transfer.BlockHash,
			}, true
		}
	}
	return Proof{}, false
}

// follows says that b is the next log of a's transaction. Numbers that the database could not keep are nobody's logs.
func follows(a, b *types.Log) bool {
	return a != nil && b != nil && !a.Removed && !b.Removed &&
		b.Index <= math.MaxInt32 && b.Index > 0 && a.Index == b.Index-1 &&
		b.BlockNumber <= math.MaxInt64 && a.BlockNumber == b.BlockNumber &&
		a.BlockHash == b.BlockHash && a.TxHash == b.TxHash && b.TxHash != common.Hash{}
}

func isUsed(l *types.Log, want Expect) bool {
	return l.Address == want.Asset && len(l.Data) == 0 && len(l.Topics) == 3 &&
		l.Topics[0] == topicAuthorizationUsed && l.Topics[1] == topicOf(want.From) && l.Topics[2] == want.Nonce
}

func isTransfer(l *types.Log, want Expect) bool {
	if l.Address != want.Asset || len(l.Topics) != 3 ||
		l.Topics[0] != topicTransfer || l.Topics[1] != topicOf(want.From) || l.Topics[2] != topicOf(want.To) {
		return false
	}
	value, err := unpackAmount(l.Data)
	return err == nil && value.Cmp(want.Value) == 0
}
