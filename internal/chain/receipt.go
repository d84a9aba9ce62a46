package chain

import (
	"context"
	"errors"
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// A Receipt is what the chain keeps of a mined transaction. That it did not revert proves no transfer: see ProofIn.
type Receipt struct {
	Transaction common.Hash
	BlockNumber uint64
	BlockHash   common.Hash
	Reverted    bool
	Logs        []*types.Log
	Depth       int // under the head that was read with it; 0 where that head is older
}

type receiptJSON struct {
	Transaction *common.Hash    `json:"transactionHash"`
	BlockNumber *hexutil.Uint64 `json:"blockNumber"`
	BlockHash   *common.Hash    `json:"blockHash"`
	Status      *hexutil.Uint64 `json:"status"`
	Logs        []*types.Log    `json:"logs"`
}

var errReceipt = errors.New("the node's receipt contradicts itself or is incomplete")

// check holds the receipt against what was asked for, and its logs against the receipt.
func (raw *receiptJSON) check(transaction common.Hash) (*Receipt, error) {
	if raw.Transaction == nil || *raw.Transaction != transaction || raw.BlockNumber == nil || raw.BlockHash == nil ||
		raw.Status == nil || *raw.Status > 1 {
		return nil, errReceipt
	}
	if *raw.BlockNumber > math.MaxInt64 {
		return nil, errRange
	}
	r := &Receipt{
		Transaction: transaction,
		BlockNumber: uint64(*raw.BlockNumber),
		BlockHash:   *raw.BlockHash,
		Reverted:    *raw.Status == 0,
		Logs:        raw.Logs,
	}
	for _, l := range r.Logs {
		if l == nil || l.TxHash != transaction || l.BlockHash != r.BlockHash || l.BlockNumber != r.BlockNumber {
			return nil, errReceipt
		}
	}
	return r, nil
}

// Receipts reads the receipts of up to 49 transactions and the head in one round trip. The result has the order of the question; nil
// stands for a transaction that is not mined.
func (n *Node) Receipts(ctx context.Context, transactions []common.Hash) ([]*Receipt, error) {
	if len(transactions) >= batchMax {
		return nil, troubleOf("eth_getTransactionReceipt", errBatch)
	}
	raw := make([]*receiptJSON, len(transactions))
	elements := make([]rpc.BatchElem, len(transactions), len(transactions)+1)
	for i, hash := range transactions {
		elements[i] = rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{hash}, Result: &raw[i]}
	}
	var head hexutil.Uint64
	// After the receipts, so that a block mined in between makes nothing look deeper than it is by then.
	elements = append(elements, rpc.BatchElem{Method: "eth_blockNumber", Result: &head})
	// A head that cannot be would make each of them final at once.
	if err := n.wholeFor(ctx, func(by *endpoint) error { return n.reaches(by, uint64(head)) }, elements); err != nil {
		return nil, err
	}
	if head > math.MaxInt64 {
		return nil, troubleOf("eth_blockNumber", errRange)
	}
	n.saw(uint64(head), false)
	receipts := make([]*Receipt, len(transactions))
	for i := range raw {
		if raw[i] == nil {
			continue
		}
		r, err := raw[i].check(transactions[i])
		if err != nil {
			return nil, troubleOf("eth_getTransactionReceipt", err)
		}
		r.Depth = depthOf(uint64(head), r.BlockNumber)
		receipts[i] = r
	}
	return receipts, nil
}

// ReceiptsMax is how many transactions Receipts takes at once: the head uses one call of the round trip.
const ReceiptsMax = batchMax - 1

var errBatch = errors.New("too many calls for one round trip")

// Locate looks for a transfer in a transaction and says how deep it stands. It reads everything anew: after a reorganisation the same
// transaction can stand in another block, and then the proof names that one.
func (n *Node) Locate(ctx context.Context, want Expect, transaction common.Hash) (proof Proof, depth int, found bool, err error) {
	receipts, err := n.Receipts(ctx, []common.Hash{transaction})
	if err != nil || receipts[0] == nil || receipts[0].Reverted {
		return Proof{}, 0, false, err
	}
	proof, found = ProofIn(receipts[0].Logs, want)
	if !found {
		return Proof{}, 0, false, nil
	}
	return proof, receipts[0].Depth, true, nil
}
