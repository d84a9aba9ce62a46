package chain

import (
	"context"
	"errors"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// nonceMax keeps a nonce that the node names inside the database's bigint, with room to count on.
const nonceMax = 1 << 53

// A Tip is what a sender has to know of the chain to make its next transaction.
type Tip struct {
	Head         Head
	PendingNonce uint64   // the next nonce, counting what waits in the node's pool; never below MinedNonce
	MinedNonce   uint64   // the next nonce, counting mined transactions only
	Balance      *big.Int // wei
	BaseFee      *big.Int // wei per gas, of the newest block
	PriorityFee  *big.Int // wei per gas, as the node suggests
}

// Tip reads it in one round trip.
func (n *Node) Tip(ctx context.Context, sender common.Address) (Tip, error) {
	var (
		pending, mined    hexutil.Uint64
		balance, priority *hexutil.Big
		raw               *blockJSON
	)
	var b block
	fits := func(by *endpoint) (err error) {
		if b, err = raw.check(); err != nil {
			return err
		}
		return n.reaches(by, b.Number)
	}
	if err := n.wholeFor(ctx, fits, []rpc.BatchElem{
		{Method: "eth_getTransactionCount", Args: []any{sender, "pending"}, Result: &pending},
		{Method: "eth_getTransactionCount", Args: []any{sender, latest}, Result: &mined},
		{Method: "eth_getBalance", Args: []any{sender, latest}, Result: &balance},
		{Method: blockMethod, Args: []any{latest, false}, Result: &raw},
		{Method: "eth_maxPriorityFeePerGas", Result: &priority},
	}); err != nil {
		return Tip{}, err
	}
	if balance == nil || priority == nil || b.baseFee == nil {
		return Tip{}, troubleOf(blockMethod, errNoFees)
	}
	if pending > nonceMax || mined > nonceMax || b.baseFee.BitLen() > feeBits || priority.ToInt().BitLen() > feeBits {
		return Tip{}, troubleOf("eth_getTransactionCount", errRange)
	}
	n.saw(b.Number, false)
	return Tip{
		Head:         b.Head,
		PendingNonce: max(uint64(pending), uint64(mined)),
		MinedNonce:   uint64(mined),
		Balance:      balance.ToInt(),
		BaseFee:      b.baseFee,
		PriorityFee:  priority.ToInt(),
	}, nil
}

const feeBits = 96 // 2^96 wei per gas is more than any coin's whole supply for one transaction

var errNoFees = errors.New("the node names no balance or no EIP-1559 fees")

// MinedNonceAt is the sender's next nonce as of a block of this depth. False where the chain is shorter.
func (n *Node) MinedNonceAt(ctx context.Context, sender common.Address, depth int) (nonce, block uint64, ok bool, err error) {
	var mined hexutil.Uint64
	err = OneView(ctx, func(ctx context.Context) error {
		head, err := n.FreshHead(ctx)
		if err != nil {
			return err
		}
		if block, ok = atDepth(head.Number, depth); !ok {
			return nil
		}
		return n.call(ctx, &mined, "eth_getTransactionCount", sender, hexutil.EncodeUint64(block))
	})
	if err != nil || !ok {
		return 0, 0, false, err
	}
	if mined > nonceMax {
		return 0, 0, false, troubleOf("eth_getTransactionCount", errRange)
	}
	return uint64(mined), block, true, nil
}

// Send shows signed bytes to the node: to one endpoint, and to another where that did not take the question. An error does not mean that nobody has seen them: see SentAs.
func (n *Node) Send(ctx context.Context, raw []byte) error {
	var hash common.Hash
	return n.call(ctx, &hash, "eth_sendRawTransaction", hexutil.Bytes(raw))
}

// A Sent is what is known of bytes after they were sent.
type Sent int

const (
	_             Sent = iota
	SentAccepted       // in the node's pool, by this send or an earlier one
	SentNonceUsed      // the chain has a transaction with this nonce: these very bytes, or others
	SentUnclear        // refused for now, or no answer; the same bytes may be sent again and may already be under way
)

// sentTexts is how nodes word their answers. The code is the same for all of them, so there is nothing else to go by; what is not here
// is SentUnclear, which claims nothing.
var sentTexts = []struct {
	part string // lower case
	sent Sent
}{
	{"already known", SentAccepted},
	{"known transaction", SentAccepted},
	{"already imported", SentAccepted},
	{"already exists", SentAccepted},
	{"alreadyknown", SentAccepted},
	{"nonce too low", SentNonceUsed},
	{"nonce is too low", SentNonceUsed},
	{"invalid transaction nonce", SentNonceUsed},
	{"oldnonce", SentNonceUsed},
}

// SentAs reads the error of Send. None of its values allows another transaction for the same authorization.
func SentAs(err error) Sent {
	if err == nil {
		return SentAccepted
	}
	var answered *answerError
	if errors.As(err, &answered) {
		lower := strings.ToLower(answered.text)
		for _, t := range sentTexts {
			if strings.Contains(lower, t.part) {
				return t.sent
			}
		}
	}
	return SentUnclear
}
