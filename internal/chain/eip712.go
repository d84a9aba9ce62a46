package chain

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

const word = 32 // bytes of one ABI-encoded value

// domainTypeHash and transferTypeHash name the two structs that are ever hashed here; a test compares what follows from them with
// go-ethereum's general implementation.
var (
	domainTypeHash   = crypto.Keccak256Hash([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"))
	transferTypeHash = crypto.Keccak256Hash([]byte("TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"))
)

// A Domain is the EIP-712 domain of one asset on one chain. It comes from our own table, never from what a client claims. The zero value
// is the domain of nothing.
type Domain struct{ separator common.Hash }

// NewDomain hashes the domain once, so that each digest costs two short hashes.
func NewDomain(asset Asset, chainID uint64) Domain {
	var b [5 * word]byte
	copy(b[0*word:], domainTypeHash[:])
	copy(b[1*word:], crypto.Keccak256([]byte(asset.EIP712Name)))
	copy(b[2*word:], crypto.Keccak256([]byte(asset.EIP712Version)))
	binary.BigEndian.PutUint64(b[4*word-8:], chainID)
	copy(b[5*word-common.AddressLength:], asset.Address[:])
	return Domain{crypto.Keccak256Hash(b[:])}
}

// Separator is what the contract's DOMAIN_SEPARATOR() has to return.
func (d Domain) Separator() common.Hash { return d.separator }

// Digest is what the owner of the money signs. It is written by hand because every paid request needs it, and the general
// implementation over reflection takes several times as long.
func (d Domain) Digest(a Authorization) common.Hash {
	var b [7 * word]byte
	copy(b[0*word:], transferTypeHash[:])
	copy(b[2*word-common.AddressLength:], a.From[:])
	copy(b[3*word-common.AddressLength:], a.To[:])
	a.Value.Big().FillBytes(b[3*word : 4*word])
	binary.BigEndian.PutUint64(b[5*word-8:], a.ValidAfter)
	binary.BigEndian.PutUint64(b[6*word-8:], a.ValidBefore)
	copy(b[6*word:], a.Nonce[:])
	return crypto.Keccak256Hash([]byte{0x19, 0x01}, d.separator[:], crypto.Keccak256(b[:]))
}
