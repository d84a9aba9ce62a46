package chain

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Simulate runs on the newest block exactly the call that would be broadcast, with the gas that it would have. A *Revert is the asset's
// refusal, a *Trouble the node's.
func (n *Node) Simulate(ctx context.Context, from common.Address, gas uint64, s Signed) error {
	var out hexutil.Bytes
	err := n.call(ctx, &out, "eth_call", message{From: &from, To: s.Asset, Gas: hexutil.Uint64(gas), Data: Calldata(s)}, latest)
	if err != nil {
		return revertOr(err)
	}
	return nil
}

// Blocked asks an asset that keeps a blocklist whether an account is on it. known is false where the asset cannot be asked so.
func (n *Node) Blocked(ctx context.Context, asset, account common.Address) (blocked, known bool, err error) {
	e := read(asset, pack("isBlacklisted", account), latest, nil)
	var out hexutil.Bytes
	if err := n.call(ctx, &out, e.Method, e.Args...); err != nil {
		var reverted *Revert
		if errors.As(revertOr(err), &reverted) {
			return false, false, nil
		}
		return false, false, err
	}
	blocked, err = unpackBool(out)
	return blocked, err == nil, nil
}
