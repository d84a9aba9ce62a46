package payment

import (
	"encoding/hex"
	"strings"

	"market/internal/chain"
)

// readSignature looks at the length before it decodes, so that a huge signature costs nothing and a compact one is not taken for another.
func (p *Payload) readSignature(payload object) error {
	text, err := payload.text("signature")
	if err != nil {
		return err
	}
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) < 2*chain.SignatureBytesMin || len(digits) > 2*chain.SignatureBytesMax {
		return malformed(CodeSignatureFormat, "payload.signature must be 0x and hexadecimal: 65 bytes (r, s, v) of a key, or up to %d bytes of a contract wallet. "+
			"Compact signatures of 64 bytes are not accepted.", chain.SignatureBytesMax)
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return malformed(CodeSignatureFormat, "payload.signature must be 0x and whole bytes in hexadecimal.")
	}
	inner, undeployed, err := chain.Unwrap(raw)
	if err != nil {
		return malformed(CodeSignatureFormat, "payload.signature ends as ERC-6492 says, and what stands before that end is not the wrapper of ERC-6492.")
	}
	if p.Signature, err = chain.ParseSignature(inner); err != nil {
		return malformed(CodeSignatureFormat, "payload.signature is no signature that a token accepts: of 65 bytes v must be 27 or 28 (0 and 1 are taken for them) and s in the lower "+
			"half of the curve order, and what ERC-6492 wraps must be such a signature or a contract wallet's, not wrapped again.")
	}
	p.undeployed = undeployed
	return nil
}
