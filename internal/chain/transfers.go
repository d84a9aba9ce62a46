package chain

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"market/internal/money"
)

// A Transfer is one log of an asset by which a wallet got money or gave some away.
type Transfer struct {
	Transaction common.Hash
	LogIndex    uint
	BlockNumber uint64
	BlockHash   common.Hash
	In          bool           // into the wallet
	Other       common.Address // whom it came from, or went to
	Amount      money.Amount   // above zero
}

// A Holding is what a wallet held of an asset at a block.
type Holding struct {
	Block  Head
	Amount money.Amount
}

var (
	errLogs   = errors.New("the node's logs are not those that were asked for")
	errShort  = errors.New("the chain is shorter than the depth at which it is final")
	errAnchor = errors.New("the node has not reached the block that was asked for, or has forgotten it")
)

// logFilter is a filter whose topics may be left open.
type logFilter struct {
	Address   common.Address `json:"address"`
	Topics    []any          `json:"topics"`
	FromBlock hexutil.Uint64 `json:"fromBlock"`
	ToBlock   hexutil.Uint64 `json:"toBlock"`
}

// Transfers returns every transfer of an asset into or out of a wallet in a range of blocks, in their order, and the last block of the range. It is one
// round trip: the node shows the block beside the logs, so one that has not come that far is not taken for one that has nothing. What a wallet sends to
// itself, and what moves nothing, is left out: anybody may have a token log that a wallet has sent nothing. Narrows says whether a smaller range helps.
func (n *Node) Transfers(ctx context.Context, asset, wallet common.Address, from, to uint64) ([]Transfer, Head, error) {
	var (
		in, out []types.Log
		raw     *blockJSON
		own     = topicOf(wallet)
		of      = func(topics ...any) logFilter {
			return logFilter{Address: asset, Topics: topics, FromBlock: hexutil.Uint64(from), ToBlock: hexutil.Uint64(to)}
		}
	)
	if err := n.whole(ctx, []rpc.BatchElem{
		{Method: logsMethod, Args: []any{of(topicTransfer, nil, own)}, Result: &in},
		{Method: logsMethod, Args: []any{of(topicTransfer, own)}, Result: &out},
		{Method: blockMethod, Args: []any{hexutil.EncodeUint64(to), false}, Result: &raw},
	}); err != nil {
		return nil, Head{}, err
	}
	last, err := raw.check()
	if err != nil || last.Number != to {
		return nil, Head{}, troubleOf(blockMethod, errAnchor)
	}
	seen := map[place]bool{}
	var all []Transfer
	for _, l := range slices.Concat(in, out) {
		t, err := transferOf(&l, asset, wallet, from, to)
		if err != nil {
			return nil, Head{}, troubleOf(logsMethod, err)
		}
		at := place{t.Transaction, t.LogIndex}
		if t.Amount.IsZero() || t.Other == wallet || seen[at] {
			continue
		}
		seen[at] = true
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Transfer) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.LogIndex, b.LogIndex))
	})
	return all, last.Head, nil
}

type place struct {
	transaction common.Hash
	index       uint
}

// transferOf holds a log against what was asked for. One that is of something else is a node's nonsense, and nothing is concluded from the rest then.
func transferOf(l *types.Log, asset, wallet common.Address, from, to uint64) (Transfer, error) {
	if l.Removed || l.Address != asset || len(l.Topics) != 3 || l.Topics[0] != topicTransfer || l.BlockNumber < from || l.BlockNumber > to ||
		l.Index > math.MaxInt32 || l.TxHash == (common.Hash{}) || l.BlockHash == (common.Hash{}) {
		return Transfer{}, errLogs
	}
	sender, recipient := common.BytesToAddress(l.Topics[1][:]), common.BytesToAddress(l.Topics[2][:])
	if topicOf(sender) != l.Topics[1] || topicOf(recipient) != l.Topics[2] || sender != wallet && recipient != wallet {
		return Transfer{}, errLogs
	}
	amount, err := unpackAmount(l.Data)
	if err != nil {
		return Transfer{}, err
	}
	t := Transfer{Transaction: l.TxHash, LogIndex: l.Index, BlockNumber: l.BlockNumber, BlockHash: l.BlockHash, In: recipient == wallet, Other: sender, Amount: amount}
	if !t.In {
		t.Other = recipient
	}
	return t, nil
}

// Narrows says whether a question for logs may be answered where it is put for fewer blocks: nodes bound the range and the number of results, each in
// words of its own, and some by an answer that breaks off or takes too long.
func Narrows(err error) bool {
	_, answered := errors.AsType[*answerError](err)
	return answered || errors.Is(err, errTooLarge) || errors.Is(err, errSlow)
}

// HoldingAt returns what a wallet holds of an asset at the block of a depth, and which block that is.
func (n *Node) HoldingAt(ctx context.Context, asset, wallet common.Address, depth int) (h Holding, err error) {
	err = OneView(ctx, func(ctx context.Context) error {
		head, err := n.FreshHead(ctx)
		if err != nil {
			return err
		}
		number, reached := atDepth(head.Number, depth)
		if !reached {
			return troubleOf(blockMethod, errShort)
		}
		var (
			tag    = hexutil.EncodeUint64(number)
			raw    *blockJSON
			amount hexutil.Bytes
		)
		if err := n.whole(ctx, []rpc.BatchElem{
			{Method: blockMethod, Args: []any{tag, false}, Result: &raw},
			read(asset, pack("balanceOf", wallet), tag, &amount),
		}); err != nil {
			return err
		}
		b, err := raw.check()
		if err != nil || b.Number != number {
			return troubleOf(blockMethod, errAnchor)
		}
		h.Block = b.Head
		if h.Amount, err = unpackAmount(amount); err != nil {
			return troubleOf("balanceOf", err)
		}
		return nil
	})
	if err != nil {
		return Holding{}, err
	}
	return h, nil
}

// BlockAt returns a block that the node has.
func (n *Node) BlockAt(ctx context.Context, number uint64) (Head, error) {
	b, err := n.block(ctx, hexutil.EncodeUint64(number))
	if err != nil {
		return Head{}, err
	}
	if b.Number != number {
		return Head{}, troubleOf(blockMethod, errNoBlock)
	}
	return b.Head, nil
}
