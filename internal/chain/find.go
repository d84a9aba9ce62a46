package chain

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	spanMax    = 2_000 // blocks of one eth_getLogs; public nodes refuse much more
	spansMax   = 200   // round trips of one search
	foundMax   = 8     // logs of one authorization: the token takes a nonce once, so more than one is a lie
	logsMethod = "eth_getLogs"
)

var errSearch = errors.New("the search would need too many round trips")

type filter struct {
	Address   common.Address `json:"address"`
	Topics    []common.Hash  `json:"topics"`
	FromBlock hexutil.Uint64 `json:"fromBlock"`
	ToBlock   hexutil.Uint64 `json:"toBlock"`
}

type blockFilter struct {
	Address   common.Address `json:"address"`
	Topics    []common.Hash  `json:"topics"`
	BlockHash common.Hash    `json:"blockHash"`
}

// FindSettlement looks for the transfer of an authorization from a block on, whoever sent it: anybody who sees a signed authorization
// can put it on the chain. False means that no block up to the newest has it; the caller decides what that proves.
func (n *Node) FindSettlement(ctx context.Context, want Expect, fromBlock uint64) (Proof, bool, error) {
	return n.FindSettlementTo(ctx, want, fromBlock, 0)
}

var errBehind = errors.New("the node has not reached the block that the search has to cover")

// FindSettlementTo is FindSettlement for a search that has to cover a block. Endpoints, and machines behind one of them, are some
// blocks apart: that nothing was found by one which is behind proves nothing, so it is trouble.
func (n *Node) FindSettlementTo(ctx context.Context, want Expect, fromBlock, reach uint64) (proof Proof, found bool, err error) {
	err = OneView(ctx, func(ctx context.Context) error {
		proof, found, err = n.findTo(ctx, want, fromBlock, reach)
		return err
	})
	return proof, found, err
}

func (n *Node) findTo(ctx context.Context, want Expect, fromBlock, reach uint64) (Proof, bool, error) {
	head, err := n.FreshHead(ctx)
	if err != nil {
		return Proof{}, false, err
	}
	if head.Number < reach {
		return Proof{}, false, troubleOf(logsMethod, errBehind)
	}
	if head.Number >= fromBlock && (head.Number-fromBlock)/spanMax >= spansMax {
		return Proof{}, false, troubleOf(logsMethod, errSearch)
	}
	for from := fromBlock; from <= head.Number; from += spanMax {
		proof, found, err := n.findIn(ctx, want, from, min(from+spanMax-1, head.Number))
		if err != nil || found {
			return proof, found, err
		}
	}
	return Proof{}, false, nil
}

func (n *Node) findIn(ctx context.Context, want Expect, from, to uint64) (Proof, bool, error) {
	var logs []types.Log
	if err := n.call(ctx, &logs, logsMethod, filter{
		Address:   want.Asset,
		Topics:    []common.Hash{topicAuthorizationUsed, topicOf(want.From), want.Nonce},
		FromBlock: hexutil.Uint64(from),
		ToBlock:   hexutil.Uint64(to),
	}); err != nil {
		return Proof{}, false, err
	}
	for _, l := range logs[:min(len(logs), foundMax)] {
		if l.Removed || !isUsed(&l, want) {
			continue
		}
		proof, found, err := n.transferAfter(ctx, want, &l)
		if err != nil || found {
			return proof, found, err
		}
	}
	return Proof{}, false, nil
}

// transferAfter looks for the transfer that directly follows an AuthorizationUsed log. It asks for the transfers between the two accounts in
// that block alone: the receipt has them too, but whoever burns a thousand nonces in one transaction would have us read it for each.
func (n *Node) transferAfter(ctx context.Context, want Expect, used *types.Log) (Proof, bool, error) {
	var transfers []*types.Log
	if err := n.call(ctx, &transfers, logsMethod, blockFilter{
		Address:   want.Asset,
		Topics:    []common.Hash{topicTransfer, topicOf(want.From), topicOf(want.To)},
		BlockHash: used.BlockHash,
	}); err != nil {
		return Proof{}, false, err
	}
	for _, l := range transfers {
		if proof, ok := ProofIn([]*types.Log{used, l}, want); ok {
			return proof, true, nil
		}
	}
	return Proof{}, false, nil
}
