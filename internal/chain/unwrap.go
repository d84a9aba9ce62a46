package chain

import (
	"bytes"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
)

// wrapperMark ends a signature that ERC-6492 wraps.
var wrapperMark = bytes.Repeat([]byte{0x64, 0x92}, word/2)

// wrapperForm is what stands before the mark: the factory that could deploy the wallet, the call that would, and the wallet's signature.
var wrapperForm = abi.Arguments{{Type: mustType("address")}, {Type: mustType("bytes")}, {Type: mustType("bytes")}}

func mustType(name string) abi.Type {
	t, err := abi.NewType(name, "", nil)
	if err != nil {
		panic(err)
	}
	return t
}

func isWrapped(signature []byte) bool { return bytes.HasSuffix(signature, wrapperMark) }

// Unwrap takes the wrapper of ERC-6492 off a signature. undeployed says that the signer names a factory because its wallet may not be on the chain
// yet. We never call a factory: it is a call of the signer's choice by our gas key. What has no wrapper is returned as it is.
func Unwrap(signature []byte) (inner []byte, undeployed bool, err error) {
	if !isWrapped(signature) {
		return signature, false, nil
	}
	parts, err := wrapperForm.Unpack(signature[:len(signature)-len(wrapperMark)])
	if err != nil {
		return nil, false, fmt.Errorf("%w: its ERC-6492 wrapper cannot be read", ErrSignature)
	}
	factory, _ := parts[0].(common.Address)
	inner, _ = parts[2].([]byte)
	return inner, factory != common.Address{}, nil
}
