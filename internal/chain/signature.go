package chain

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// ErrSignature is any bytes that are no signature an EIP-3009 token takes in its v, r, s form.
var ErrSignature = errors.New("not a signature")

// ParseSignature takes r ‖ s ‖ v of exactly 65 bytes. Wallets write v as 27, 28 or as the bare parity 0, 1, which becomes 27, 28 here:
// the token recovers a wrong address from anything else. Values out of range and the upper half of s (EIP-2) are refused, as the token
// refuses them. The compact form of 64 bytes (EIP-2098) is not read.
func ParseSignature(b []byte) (Signature, error) {
	var s Signature
	if len(b) != len(s) {
		return Signature{}, fmt.Errorf("%w: %d bytes, want %d", ErrSignature, len(b), len(s))
	}
	copy(s[:], b)
	switch s[64] {
	case 0, 1:
		s[64] += 27
	case 27, 28:
	default:
		return Signature{}, fmt.Errorf("%w: v is %d, want 27 or 28", ErrSignature, s[64])
	}
	if err := s.check(); err != nil {
		return Signature{}, err
	}
	return s, nil
}

// V is 27 or 28.
func (s Signature) V() uint8 { return s[64] }

// R is the first half.
func (s Signature) R() common.Hash { return common.Hash(s[:32]) }

// S is the second half.
func (s Signature) S() common.Hash { return common.Hash(s[32:64]) }

// check holds for every value that ParseSignature returned; a Signature is an array, so others can be made.
func (s Signature) check() error {
	r, half := new(big.Int).SetBytes(s[:32]), new(big.Int).SetBytes(s[32:64])
	if (s[64] != 27 && s[64] != 28) || !crypto.ValidateSignatureValues(s[64]-27, r, half, true) {
		return fmt.Errorf("%w: r, s or v out of range", ErrSignature)
	}
	return nil
}

// Recover returns who signed the digest. A signature over other contents recovers to some other address, so the caller compares.
func Recover(digest common.Hash, s Signature) (common.Address, error) {
	if err := s.check(); err != nil {
		return common.Address{}, err
	}
	s[64] -= 27
	key, err := crypto.Ecrecover(digest[:], s[:])
	if err != nil {
		return common.Address{}, fmt.Errorf("%w: no public key has it", ErrSignature)
	}
	return common.BytesToAddress(crypto.Keccak256(key[1:])[12:]), nil
}
