// Package contracts carries the compiled form of what lives on the development chain: TestUSDC, an EIP-3009 token, and TestWallet, a contract
// wallet. Their sources say what they do.
//
// The artifacts are committed, so building and testing need no Node. `go generate ./contracts` rebuilds them with the compiler that
// package-lock.json pins, and `node contracts/build.mjs --check` fails where a rebuild gives other bytes.
package contracts

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

//go:generate npm ci --ignore-scripts --no-audit --no-fund
//go:generate node build.mjs

//go:embed artifacts/TestUSDC.json
var testUSDC []byte

//go:embed artifacts/TestWallet.json
var testWallet []byte

// What TestUSDC is made of, fixed in its source. Name and version are those of its EIP-712 domain.
const (
	TokenName     = "USDC"
	TokenVersion  = "2"
	TokenSymbol   = "USDC"
	TokenDecimals = 6
)

// A Contract is one compiled contract.
type Contract struct {
	ABI abi.ABI
	// Creation is the code of a deploying transaction, before the arguments of the constructor. A token's owner is the sender.
	Creation []byte
	// Runtime is the code that lies at the contract's address. It needs no constructor, so a genesis file can place it: see TokenStorage.
	Runtime []byte
}

// Token returns TestUSDC. It panics where the committed artifact cannot be read, which a test of this package rules out.
func Token() Contract { return read("TestUSDC", testUSDC) }

// Wallet returns TestWallet, whose constructor takes the owner and the mood. It panics as Token does.
func Wallet() Contract { return read("TestWallet", testWallet) }

func read(name string, file []byte) Contract {
	var artifact struct {
		ABI      json.RawMessage `json:"abi"`
		Creation hexutil.Bytes   `json:"bytecode"`
		Runtime  hexutil.Bytes   `json:"deployedBytecode"`
	}
	if err := json.Unmarshal(file, &artifact); err != nil {
		panic(fmt.Sprintf("contracts: read the artifact of %s: %v", name, err))
	}
	parsed, err := abi.JSON(bytes.NewReader(artifact.ABI))
	if err != nil {
		panic(fmt.Sprintf("contracts: parse the ABI of %s: %v", name, err))
	}
	return Contract{ABI: parsed, Creation: artifact.Creation, Runtime: artifact.Runtime}
}

// TokenStorage is the storage that gives a TestUSDC placed by genesis its owner, who may mint and switch faults. The owner is the
// first variable of the source, hence slot 0; an unset slot would leave the token without anybody who may mint.
func TokenStorage(owner common.Address) map[common.Hash]common.Hash {
	return map[common.Hash]common.Hash{{}: common.BytesToHash(owner.Bytes())}
}

// Pack encodes a call of the method with this signature, "mint(address,uint256)" for example. Overloads share a name, and the names
// that package abi invents for them hang on the order of the ABI, so the signature is the only name that is safe to use.
func (c Contract) Pack(signature string, args ...any) ([]byte, error) {
	for _, m := range c.ABI.Methods {
		if m.Sig == signature {
			packed, err := m.Inputs.Pack(args...)
			if err != nil {
				return nil, fmt.Errorf("pack %s: %w", signature, err)
			}
			return append(bytes.Clone(m.ID), packed...), nil
		}
	}
	return nil, fmt.Errorf("pack %s: no such method", signature)
}
