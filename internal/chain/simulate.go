package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// SettleGas is what a settlement may use. FiatToken takes about 100 000 of it; the rest is for the check of a contract wallet, which is not
// ours and may want to burn more.
const SettleGas = 250_000

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

// magic is what a contract wallet answers where a signature is its own (ERC-1271); the selector of the question is the same word.
var magic = selector("isValidSignature(bytes32,bytes)")

var questionForm = abi.Arguments{{Type: mustType("bytes32")}, {Type: mustType("bytes")}}

// Takes asks a contract wallet whether a signature over a digest is its own. It proves who asks where a simulation can prove nothing, because the
// nonce is used. Whatever the wallet says but yes is no.
func (n *Node) Takes(ctx context.Context, wallet common.Address, digest common.Hash, s Signature) (bool, error) {
	data, err := questionForm.Pack(digest, s.Bytes())
	if err != nil {
		return false, fmt.Errorf("ask wallet %s: %w", wallet, err)
	}
	var out hexutil.Bytes
	err = n.call(capped(ctx, wordMax), &out, "eth_call", message{To: wallet, Gas: SettleGas, Data: append(magic[:], data...)}, latest)
	if err != nil {
		var reverted *Revert
		if errors.As(revertOr(err), &reverted) || errors.Is(err, errTooLarge) {
			return false, nil
		}
		return false, err
	}
	// The token reads the first word and lets more follow, so we do, up to wordMax.
	return len(out) >= word && common.Hash(out[:word]) == common.Hash{magic[0], magic[1], magic[2], magic[3]}, nil
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
