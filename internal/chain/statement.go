package chain

import (
	"encoding/binary"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

var statementDomainTypeHash = crypto.Keccak256Hash([]byte("EIP712Domain(string name,string version,uint256 chainId)"))

// A StatementDomain is an EIP-712 domain of words: receipts and offers. It names no contract, so nothing that is signed in it is valid
// for any token, whatever it says, and a key that holds money may sign there. The zero value is the domain of nothing.
type StatementDomain struct{ separator common.Hash }

// NewStatementDomain returns the domain of a name, with version "1" and, as x402 has it for statements about any chain, chain id 1.
func NewStatementDomain(name string) StatementDomain {
	var b [4 * word]byte
	copy(b[0*word:], statementDomainTypeHash[:])
	copy(b[1*word:], crypto.Keccak256([]byte(name)))
	copy(b[2*word:], crypto.Keccak256([]byte("1")))
	binary.BigEndian.PutUint64(b[4*word-8:], 1)
	return StatementDomain{crypto.Keccak256Hash(b[:])}
}

// Digest is what is signed of a statement, of which structHash is the EIP-712 hash.
func (d StatementDomain) Digest(structHash common.Hash) common.Hash {
	return crypto.Keccak256Hash([]byte{0x19, 0x01}, d.separator[:], structHash[:])
}

// SignStatement signs words, never a transfer. The same statement has the same signature each time (RFC 6979), so that it need not be
// kept.
func (k Key) SignStatement(d StatementDomain, structHash common.Hash) (Signature, error) {
	if k.private == nil {
		return Signature{}, ErrNoKey
	}
	digest := d.Digest(structHash)
	raw, err := crypto.Sign(digest[:], k.private)
	if err != nil {
		return Signature{}, fmt.Errorf("sign statement of %s: %w", k.address, err)
	}
	return ParseSignature(raw)
}
