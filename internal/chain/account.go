package chain

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"market/internal/money"
)

const latest = "latest"

// An AccountState is what decides whether an authorization of an account can pay, as of the newest block.
type AccountState struct {
	Balance   money.Amount
	NonceUsed bool
	HasCode   bool // a contract wallet or a delegated account: the token may not take its plain signature
}

// Account reads it in one round trip.
func (n *Node) Account(ctx context.Context, asset, owner common.Address, nonce common.Hash) (AccountState, error) {
	var balance, used, code hexutil.Bytes
	if err := n.whole(ctx, []rpc.BatchElem{
		read(asset, pack("balanceOf", owner), latest, &balance),
		read(asset, pack("authorizationState", owner, nonce), latest, &used),
		{Method: "eth_getCode", Args: []any{owner, latest}, Result: &code},
	}); err != nil {
		return AccountState{}, err
	}
	var (
		state AccountState
		err   error
	)
	if state.Balance, err = unpackAmount(balance); err != nil {
		return AccountState{}, troubleOf("balanceOf", err)
	}
	if state.NonceUsed, err = unpackBool(used); err != nil {
		return AccountState{}, troubleOf("authorizationState", err)
	}
	state.HasCode = len(code) > 0
	return state, nil
}

// UsedMax is how many nonces Used looks at: they fill one round trip.
const UsedMax = batchMax

// Used says of nonces of an authorizer whether the asset has taken or cancelled them, in one round trip, as of the newest block.
func (n *Node) Used(ctx context.Context, asset, authorizer common.Address, nonces []common.Hash) ([]bool, error) {
	if len(nonces) == 0 {
		return nil, nil
	}
	answers := make([]hexutil.Bytes, len(nonces))
	var elements []rpc.BatchElem
	for i, nonce := range nonces {
		elements = append(elements, read(asset, pack("authorizationState", authorizer, nonce), latest, &answers[i]))
	}
	if err := n.whole(ctx, elements); err != nil {
		return nil, err
	}
	used := make([]bool, len(nonces))
	for i := range nonces {
		var err error
		if used[i], err = unpackBool(answers[i]); err != nil {
			return nil, troubleOf("authorizationState", err)
		}
	}
	return used, nil
}

// Balance returns the native coin of an account, in wei.
func (n *Node) Balance(ctx context.Context, owner common.Address) (*big.Int, error) {
	var wei hexutil.Big
	if err := n.call(ctx, &wei, "eth_getBalance", owner, latest); err != nil {
		return nil, err
	}
	return wei.ToInt(), nil
}

// AuthorizationUsed says whether the asset has taken or cancelled a nonce of an authorizer, as of the newest block.
func (n *Node) AuthorizationUsed(ctx context.Context, asset, authorizer common.Address, nonce common.Hash) (bool, error) {
	return n.authorizationUsedAt(ctx, asset, authorizer, nonce, latest)
}

func (n *Node) authorizationUsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, tag string) (bool, error) {
	e := read(asset, pack("authorizationState", authorizer, nonce), tag, nil)
	var out hexutil.Bytes
	if err := n.call(ctx, &out, e.Method, e.Args...); err != nil {
		return false, err
	}
	used, err := unpackBool(out)
	if err != nil {
		return false, troubleOf("authorizationState", err)
	}
	return used, nil
}

// LapsedAt proves that an authorization has not paid and never will: its nonce is unused at a block of this depth whose time is
// validBefore or later. False means not proved, which is no proof of the contrary.
func (n *Node) LapsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, validBefore uint64, depth int) (lapsed bool, err error) {
	err = OneView(ctx, func(ctx context.Context) error {
		lapsed, err = n.lapsedAt(ctx, asset, authorizer, nonce, validBefore, depth)
		return err
	})
	return lapsed, err
}

func (n *Node) lapsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, validBefore uint64, depth int) (bool, error) {
	head, err := n.FreshHead(ctx)
	if err != nil {
		return false, err
	}
	number, ok := atDepth(head.Number, depth)
	if !ok {
		return false, nil
	}
	tag := hexutil.EncodeUint64(number)
	b, err := n.block(ctx, tag)
	if err != nil {
		return false, err
	}
	if b.Number != number {
		return false, troubleOf(blockMethod, errNoBlock)
	}
	if b.Time < validBefore {
		return false, nil
	}
	used, err := n.authorizationUsedAt(ctx, asset, authorizer, nonce, tag)
	return !used && err == nil, err
}

// UsedAt says whether the asset had taken or cancelled a nonce at the block of this depth, and which block that is. False also where the
// chain is shorter.
func (n *Node) UsedAt(ctx context.Context, asset, authorizer common.Address, nonce common.Hash, depth int) (used bool, block uint64, err error) {
	err = OneView(ctx, func(ctx context.Context) error {
		head, err := n.FreshHead(ctx)
		if err != nil {
			return err
		}
		var reached bool
		if block, reached = atDepth(head.Number, depth); !reached {
			used = false
			return nil
		}
		used, err = n.authorizationUsedAt(ctx, asset, authorizer, nonce, hexutil.EncodeUint64(block))
		return err
	})
	if err != nil {
		return false, 0, err
	}
	return used, block, nil
}

// atDepth is the number of the block that stands at a depth under a head, 1 being the head; false where the chain is shorter.
func atDepth(head uint64, depth int) (uint64, bool) {
	if depth < 1 || uint64(depth-1) > head {
		return 0, false
	}
	return head - uint64(depth-1), true
}

// depthOf is how deep a block stands under a head. It is 0 for a block that the head has not reached, as two nodes behind one URL show it.
func depthOf(head, number uint64) int {
	if number > head {
		return 0
	}
	return int(head-number) + 1 //nolint:gosec // both are at most MaxInt64, see check
}

// A message is the call object of eth_call.
type message struct {
	From *common.Address `json:"from,omitempty"`
	To   common.Address  `json:"to"`
	Gas  hexutil.Uint64  `json:"gas"`
	Data hexutil.Bytes   `json:"data"`
}

const readGas = 200_000 // a view function of a token takes a tenth of it

func read(to common.Address, data []byte, tag string, into *hexutil.Bytes) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_call", Args: []any{message{To: to, Gas: readGas, Data: data}, tag}, Result: into}
}
