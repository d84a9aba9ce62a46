package chain

import (
	"github.com/ethereum/go-ethereum/common"

	"market/internal/money"
)

// An Authorization is the message of EIP-3009's TransferWithAuthorization: whoever holds the signed form may move Value from From to
// To, once, in the open interval (ValidAfter, ValidBefore) of block time.
type Authorization struct {
	From        common.Address
	To          common.Address
	Value       money.Amount
	ValidAfter  uint64 // Unix seconds
	ValidBefore uint64 // Unix seconds
	Nonce       common.Hash
}

// Signed is an authorization of one asset that can be shown to a chain.
type Signed struct {
	Asset common.Address
	Authorization
	Signature Signature
}
