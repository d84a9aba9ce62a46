package chain

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// TextDigest is what a wallet signs of a text (EIP-191, personal_sign).
func TextDigest(text string) common.Hash {
	return crypto.Keccak256Hash(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d", len(text)), []byte(text))
}

// SignText signs a text as wallets do. What begins as it makes it is no transaction and no authorization.
func (k Key) SignText(text string) (Signature, error) {
	if k.private == nil {
		return Signature{}, ErrNoKey
	}
	digest := TextDigest(text)
	raw, err := crypto.Sign(digest[:], k.private)
	if err != nil {
		return Signature{}, fmt.Errorf("sign a text with the key of %s: %w", k.address, err)
	}
	return ParseSignature(raw)
}
