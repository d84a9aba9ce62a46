package chain

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

const (
	// SignatureBytesMin is the length of a key's own signature: r, s and v. Nothing shorter is a signature here.
	SignatureBytesMin = 65
	// SignatureBytesMax caps what a contract wallet may want to see. Wallets of several owners or with passkeys need up to 2 KiB.
	SignatureBytesMax = 4096
)

// ErrSignature is any bytes that are no signature an EIP-3009 token can be shown.
var ErrSignature = errors.New("not a signature")

// A Signature is what an account gives for an authorization: a key's r, s and v, or whatever a contract wallet takes for its own word. Only
// ParseSignature makes one, so of 65 bytes v is 27 or 28 and s is in the lower half of the curve order (EIP-2). The zero value is none. Values can be
// compared with ==.
type Signature struct{ raw string }

// ParseSignature takes r ‖ s ‖ v of exactly 65 bytes, or up to SignatureBytesMax bytes that only a contract wallet can judge. Signers write v as
// 27, 28 or as the bare parity 0, 1, which becomes 27, 28 here: the token recovers a wrong address from anything else. Values out of range and the
// upper half of s are refused, as the token refuses them. The compact form of 64 bytes (EIP-2098) and anything shorter is refused by its length, so that it
// is never cut or stretched into another signature. A wrapper of ERC-6492 has to be taken off before: see Unwrap.
func ParseSignature(b []byte) (Signature, error) {
	switch {
	case len(b) < SignatureBytesMin || len(b) > SignatureBytesMax:
		return Signature{}, fmt.Errorf("%w: %d bytes, want %d to %d", ErrSignature, len(b), SignatureBytesMin, SignatureBytesMax)
	case isWrapped(b):
		return Signature{}, fmt.Errorf("%w: it is wrapped", ErrSignature)
	case len(b) > SignatureBytesMin:
		return Signature{string(b)}, nil
	}
	own := [SignatureBytesMin]byte(b)
	switch own[64] {
	case 0, 1:
		own[64] += 27
	case 27, 28:
	default:
		return Signature{}, fmt.Errorf("%w: v is %d, want 27 or 28", ErrSignature, own[64])
	}
	r, s := new(big.Int).SetBytes(own[:32]), new(big.Int).SetBytes(own[32:64])
	if !crypto.ValidateSignatureValues(own[64]-27, r, s, true) {
		return Signature{}, fmt.Errorf("%w: r or s out of range", ErrSignature)
	}
	return Signature{string(own[:])}, nil
}

// OfKey says whether it has the form that a key gives. A contract wallet may take that form as well.
func (s Signature) OfKey() bool { return len(s.raw) == SignatureBytesMin }

// Bytes returns a copy; ParseSignature makes the same value of it.
func (s Signature) Bytes() []byte { return []byte(s.raw) }

// String says nothing of the contents: whoever reads a signature in a log can show it to the chain.
func (s Signature) String() string { return fmt.Sprintf("signature of %d bytes", len(s.raw)) }

// vrs returns the parts of a key's signature.
func (s Signature) vrs() (v uint8, r, half common.Hash, ok bool) {
	if !s.OfKey() {
		return 0, common.Hash{}, common.Hash{}, false
	}
	return s.raw[64], common.Hash([]byte(s.raw[:32])), common.Hash([]byte(s.raw[32:64])), true
}

// Recover returns the address whose key signed the digest. A signature over other contents recovers to some other address, so the caller
// compares. Of a signature that no key gave there is nothing to recover.
func Recover(digest common.Hash, s Signature) (common.Address, error) {
	if !s.OfKey() {
		return common.Address{}, fmt.Errorf("%w: no key gives %d bytes", ErrSignature, len(s.raw))
	}
	raw := s.Bytes()
	raw[64] -= 27
	key, err := crypto.Ecrecover(digest[:], raw)
	if err != nil {
		return common.Address{}, fmt.Errorf("%w: no public key has it", ErrSignature)
	}
	return common.BytesToAddress(crypto.Keccak256(key[1:])[12:]), nil
}
