package chain

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// ErrNoKey is the zero Key asked to sign.
var ErrNoKey = errors.New("no key")

// A Key signs for one address. However it is printed or encoded, only the address shows. The zero Key signs nothing.
type Key struct {
	private *ecdsa.PrivateKey
	address common.Address
}

// ParseKey reads 64 hexadecimal digits, with or without 0x. Its error never repeats the text.
func ParseKey(hex string) (Key, error) {
	private, err := crypto.HexToECDSA(strings.TrimPrefix(hex, "0x"))
	if err != nil {
		return Key{}, errors.New("not a private key: want 64 hexadecimal digits in the range of the curve")
	}
	return newKey(private), nil
}

func newKey(private *ecdsa.PrivateKey) Key {
	return Key{private, crypto.PubkeyToAddress(private.PublicKey)}
}

// Address is whose key it is.
func (k Key) Address() common.Address { return k.address }

// SignAuthorization signs a transfer of the key's own money.
func (k Key) SignAuthorization(d Domain, a Authorization) (Signature, error) {
	if k.private == nil {
		return Signature{}, ErrNoKey
	}
	if a.From != k.address {
		return Signature{}, fmt.Errorf("sign authorization of %s with the key of %s", a.From, k.address)
	}
	digest := d.Digest(a)
	raw, err := crypto.Sign(digest[:], k.private)
	if err != nil {
		return Signature{}, fmt.Errorf("sign authorization of %s: %w", a.From, err)
	}
	return ParseSignature(raw)
}

// SignTransaction signs a transaction that the key's account pays for.
func (k Key) SignTransaction(tx *types.Transaction, chainID uint64) (*types.Transaction, error) {
	if k.private == nil {
		return nil, ErrNoKey
	}
	signed, err := types.SignTx(tx, types.LatestSignerForChainID(Network{ChainID: chainID}.chainID()), k.private)
	if err != nil {
		return nil, fmt.Errorf("sign transaction of %s: %w", k.address, err)
	}
	return signed, nil
}

func (k Key) String() string { return "key of " + k.address.Hex() }

// GoString keeps %#v from walking into the key.
func (k Key) GoString() string { return k.String() }

// Format answers every verb, %d and %x too, which would otherwise print the fields.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// MarshalText makes every encoder write the address only; JSON uses it too.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
