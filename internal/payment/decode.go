package payment

import (
	"encoding/hex"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/money"
	"market/internal/wire"
)

// A Version is one of x402's two wire forms.
type Version int

const (
	_  Version = iota
	V1         // short network names; what is paid in follows from what was signed
	V2         // CAIP-2 networks; the whole entry that was chosen is echoed
)

// A Payload is a decoded payment. Every member is of its type and in range; whether it pays for anything is not known yet.
type Payload struct {
	Version Version
	Scheme  string
	Network string         // CAIP-2; of version 1 the short name, until Normalize
	Asset   common.Address // version 1 names none: zero until In says which one it is

	Accepted    Accepted // zero in version 1, which echoes no terms
	ResourceURL string   // empty where the client left it out
	Identifier  string   // the client's own name for this payment; empty where it gave none
	echoed      map[string]wire.Value

	From, To    common.Address
	Value       money.Amount
	ValidAfter  money.Amount // Unix seconds; wider than a time, as the token's uint256 is
	ValidBefore money.Amount
	Nonce       common.Hash
	Signature   chain.Signature
}

// Read takes a PaymentPayload of either version, as its x402Version says. Every error is a refusal for payment_malformed whose text is ours: it
// never holds a part of what was sent.
func Read(root wire.Value) (Payload, error) {
	o := object{"", root}
	version, err := readVersion(o)
	if err != nil {
		return Payload{}, err
	}
	p := Payload{Version: version}
	switch version {
	case V1:
		err = p.readV1(o)
	case V2:
		err = p.readV2(o)
	}
	if err != nil {
		return Payload{}, err
	}
	payload, err := o.object("payload")
	if err != nil {
		return Payload{}, err
	}
	if err := p.readAuthorization(payload); err != nil {
		return Payload{}, err
	}
	return p, nil
}

// readVersion takes an integer in its one spelling: a version that another reader may take for another one must not pass.
func readVersion(o object) (Version, error) {
	switch v := o.Members["x402Version"]; {
	case v.Kind == wire.Number && v.Text == "1":
		return V1, nil
	case v.Kind == wire.Number && v.Text == "2":
		return V2, nil
	}
	return 0, malformed(CodeVersion, "x402Version must be the number 1 or the number 2.")
}

// readV1 refuses the members of version 2, because whoever sends a mixture can not mean both.
func (p *Payload) readV1(o object) error {
	if o.Given("accepted") {
		return malformed(CodePayload, "x402Version is 1, and accepted belongs to a payment of version 2.")
	}
	var err error
	if p.Scheme, err = o.text("scheme"); err != nil {
		return err
	}
	p.Network, err = o.v1Network("network")
	return err
}

func (p *Payload) readV2(o object) error {
	accepted, err := o.object("accepted")
	if err != nil {
		return malformed(CodePayload, "accepted must be an object: the chosen entry of accepts in PAYMENT-REQUIRED, echoed whole. "+
			"Only a payment of x402 version 1 has none, and its x402Version is 1.")
	}
	if p.Accepted, err = readAccepted(accepted); err != nil {
		return err
	}
	p.Scheme, p.Network, p.Asset = p.Accepted.Scheme, p.Accepted.Network, p.Accepted.Asset
	if p.ResourceURL, err = readResourceURL(o); err != nil {
		return err
	}
	return p.readExtensions(o)
}

func readResourceURL(o object) (string, error) {
	if !o.Given("resource") {
		return "", nil
	}
	resource, err := o.object("resource")
	if err != nil {
		return "", err
	}
	if !resource.Given("url") {
		return "", nil
	}
	return resource.text("url")
}

func (p *Payload) readAuthorization(payload object) error {
	a, err := payload.object("authorization")
	if err != nil {
		return malformed(CodePayloadKind, "payload.authorization must be an object: this server takes EIP-3009 authorizations.")
	}
	if p.From, err = a.address("from"); err != nil {
		return err
	}
	if p.To, err = a.address("to"); err != nil {
		return err
	}
	if p.Value, err = a.integer("value"); err != nil {
		return err
	}
	if p.ValidAfter, err = a.integer("validAfter"); err != nil {
		return err
	}
	if p.ValidBefore, err = a.integer("validBefore"); err != nil {
		return err
	}
	if p.Nonce, err = a.hash("nonce"); err != nil {
		return err
	}
	p.Signature, err = readSignature(payload)
	return err
}

// readSignature looks at the length before it decodes, so that a huge signature costs nothing and a compact one is not cut into another.
func readSignature(payload object) (chain.Signature, error) {
	s, err := payload.text("signature")
	if err != nil {
		return chain.Signature{}, err
	}
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok || len(digits) != 2*len(chain.Signature{}) {
		return chain.Signature{}, malformed(CodeSignatureFormat,
			"payload.signature must be 0x and 65 bytes in hexadecimal (r, s, v). Compact signatures are not accepted, and contract wallets are not supported yet.")
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return chain.Signature{}, malformed(CodeSignatureFormat, "payload.signature must be 0x and 65 bytes in hexadecimal (r, s, v).")
	}
	signature, err := chain.ParseSignature(raw)
	if err != nil {
		return chain.Signature{}, malformed(CodeSignatureFormat,
			"payload.signature is no signature that a token accepts: v must be 27 or 28 (0 and 1 are taken for them), and s in the lower half of the curve order.")
	}
	return signature, nil
}
