package chain

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// An AssetError names the first thing in which a contract differs from our configuration of it.
type AssetError struct {
	Asset      Asset
	Network    string
	Field      string
	Contract   string // what the contract says
	Configured string
}

func (e *AssetError) Error() string {
	return fmt.Sprintf("asset %s on %s: %s: the contract says %q, configured is %q", e.Asset.Address, e.Network, e.Field, e.Contract, e.Configured)
}

// CheckAsset compares a configured asset with the contract. A wrong EIP-712 domain would let every payment pass our own verification
// and fail on the chain, so it is found before anything is offered. The separator decides, as it covers name, version, chain and
// address; the readable name and version only tell which of them is wrong.
func (n *Node) CheckAsset(ctx context.Context, asset Asset) error {
	var code, name, version, decimals, separator hexutil.Bytes
	elements := []rpc.BatchElem{
		{Method: "eth_getCode", Args: []any{asset.Address, latest}, Result: &code},
		read(asset.Address, pack("DOMAIN_SEPARATOR"), latest, &separator),
		read(asset.Address, pack("decimals"), latest, &decimals),
		read(asset.Address, pack("name"), latest, &name),
		read(asset.Address, pack("version"), latest, &version),
	}
	if err := n.batch(ctx, elements); err != nil {
		return err
	}
	for _, e := range elements {
		// A function that the contract lacks reverts; anything else is the node's.
		var reverted *Revert
		if e.Error != nil && !errors.As(revertOr(e.Error), &reverted) {
			return e.Error
		}
	}
	differs := func(field, contract, configured string) error {
		return &AssetError{Asset: asset, Network: n.network.ID, Field: field, Contract: line(contract), Configured: configured}
	}
	if len(code) == 0 {
		return differs("code", "", "a contract")
	}
	if got, err := unpackUint8(decimals); err == nil && got != asset.Decimals {
		return differs("decimals", strconv.Itoa(got), strconv.Itoa(asset.Decimals))
	}
	want := NewDomain(asset, n.network.ChainID).Separator()
	if got, err := unpackHash(separator); err == nil && got == want {
		return nil
	}
	if got, err := unpackString("name", name); err == nil && got != asset.EIP712Name {
		return differs("eip712_name", got, asset.EIP712Name)
	}
	if got, err := unpackString("version", version); err == nil && got != asset.EIP712Version {
		return differs("eip712_version", got, asset.EIP712Version)
	}
	return differs("DOMAIN_SEPARATOR", separator.String(), want.Hex())
}
