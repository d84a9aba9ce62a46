package chain

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/money"
)

// tokenABI is what we use of an EIP-3009 token. It has transferWithAuthorization twice, and package abi numbers the second; see Calldata.
var tokenABI = mustParse(`[
	{"type":"function","name":"transferWithAuthorization","stateMutability":"nonpayable","outputs":[],"inputs":[
		{"name":"from","type":"address"},{"name":"to","type":"address"},{"name":"value","type":"uint256"},
		{"name":"validAfter","type":"uint256"},{"name":"validBefore","type":"uint256"},{"name":"nonce","type":"bytes32"},
		{"name":"v","type":"uint8"},{"name":"r","type":"bytes32"},{"name":"s","type":"bytes32"}]},
	{"type":"function","name":"transferWithAuthorization","stateMutability":"nonpayable","outputs":[],"inputs":[
		{"name":"from","type":"address"},{"name":"to","type":"address"},{"name":"value","type":"uint256"},
		{"name":"validAfter","type":"uint256"},{"name":"validBefore","type":"uint256"},{"name":"nonce","type":"bytes32"},
		{"name":"signature","type":"bytes"}]},
	{"type":"function","name":"authorizationState","stateMutability":"view","outputs":[{"type":"bool"}],"inputs":[
		{"name":"authorizer","type":"address"},{"name":"nonce","type":"bytes32"}]},
	{"type":"function","name":"balanceOf","stateMutability":"view","outputs":[{"type":"uint256"}],"inputs":[{"name":"account","type":"address"}]},
	{"type":"function","name":"isBlacklisted","stateMutability":"view","outputs":[{"type":"bool"}],"inputs":[{"name":"account","type":"address"}]},
	{"type":"function","name":"paused","stateMutability":"view","outputs":[{"type":"bool"}],"inputs":[]},
	{"type":"function","name":"name","stateMutability":"view","outputs":[{"type":"string"}],"inputs":[]},
	{"type":"function","name":"version","stateMutability":"view","outputs":[{"type":"string"}],"inputs":[]},
	{"type":"function","name":"decimals","stateMutability":"view","outputs":[{"type":"uint8"}],"inputs":[]},
	{"type":"function","name":"DOMAIN_SEPARATOR","stateMutability":"view","outputs":[{"type":"bytes32"}],"inputs":[]}
]`)

var (
	topicTransfer          = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))
	topicAuthorizationUsed = crypto.Keccak256Hash([]byte("AuthorizationUsed(address,bytes32)"))
)

// errOutput is an answer of a contract that does not have the form of the function's result.
var errOutput = errors.New("the contract's answer has another form")

func mustParse(text string) abi.ABI {
	parsed, err := abi.JSON(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return parsed
}

// pack encodes a call of the token; the arguments are ours, so a mismatch is a programmer's error.
func pack(function string, args ...any) []byte {
	data, err := tokenABI.Pack(function, args...)
	if err != nil {
		panic(fmt.Sprintf("chain: pack %s: %v", function, err))
	}
	return data
}

// Calldata is the call of the asset that moves the money: exactly what is simulated and then broadcast. A signature in the form of a key goes
// through the v, r, s overload, whoever the payer is: every token has it, and older ones have no other. Whatever else a contract wallet gives fits
// only into the one that takes bytes.
func Calldata(s Signed) []byte {
	args := []any{s.From, s.To, s.Value.Big(), new(big.Int).SetUint64(s.ValidAfter), new(big.Int).SetUint64(s.ValidBefore), s.Nonce}
	if v, r, half, ok := s.Signature.vrs(); ok {
		return pack("transferWithAuthorization", append(args, v, r, half)...)
	}
	return pack("transferWithAuthorization0", append(args, s.Signature.Bytes())...)
}

// topicOf is how an address stands in a log.
func topicOf(a common.Address) common.Hash { return common.BytesToHash(a[:]) }

func unpackAmount(b []byte) (money.Amount, error) {
	if len(b) != word {
		return money.Amount{}, errOutput
	}
	return money.FromBig(new(big.Int).SetBytes(b))
}

func unpackHash(b []byte) (common.Hash, error) {
	if len(b) != word {
		return common.Hash{}, errOutput
	}
	return common.Hash(b), nil
}

func unpackBool(b []byte) (bool, error) {
	h, err := unpackHash(b)
	switch {
	case err != nil:
		return false, err
	case h == common.Hash{}:
		return false, nil
	case h == common.Hash{31: 1}:
		return true, nil
	}
	return false, errOutput
}

func unpackUint8(b []byte) (int, error) {
	h, err := unpackHash(b)
	if err != nil {
		return 0, err
	}
	if (h != common.Hash{31: h[31]}) {
		return 0, errOutput
	}
	return int(h[31]), nil
}

func unpackString(function string, b []byte) (string, error) {
	values, err := tokenABI.Unpack(function, b)
	if err != nil || len(values) != 1 {
		return "", errOutput
	}
	text, ok := values[0].(string)
	if !ok {
		return "", errOutput
	}
	return text, nil
}
