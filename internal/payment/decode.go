package payment

import (
	"errors"
	"net/http"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/money"
	"market/internal/wire"
)

// Names of the headers of x402 v2, and of v1's payment.
const (
	HeaderRequired  = "PAYMENT-REQUIRED"
	HeaderSignature = "PAYMENT-SIGNATURE"
	HeaderResponse  = "PAYMENT-RESPONSE"
	HeaderV1Payment = "X-PAYMENT"
)

// headerBytesReadMax caps a header before anything of it is decoded; an ordinary payment takes 1 to 2 KiB.
const headerBytesReadMax = 16 << 10

// A Payload is a decoded payment. Every member is of its type and in range; whether it pays for anything is not known yet.
type Payload struct {
	Accepted    Accepted
	ResourceURL string // empty where the client left it out
	Identifier  string // the client's own name for this payment; empty where it gave none
	brokenEcho  bool   // what it echoed of our extensions lacks something of ours

	From, To    common.Address
	Value       money.Amount
	ValidAfter  money.Amount // Unix seconds; wider than a time, as the token's uint256 is
	ValidBefore money.Amount
	Nonce       common.Hash
	Signature   chain.Signature
	undeployed  bool // the signer names a factory that could deploy its wallet (ERC-6492)
}

// FromHeaders finds the payment of a request. It is false where there is none. A header that is there counts as a payment even when it is
// empty: whoever sends one means to pay, and should learn that it did not arrive. Two headers are refused, because paying by one and being served by the
// other is a way to cheat.
func FromHeaders(h http.Header) (header string, paid bool, err error) {
	v2, v1 := h.Values(HeaderSignature), h.Values(HeaderV1Payment)
	switch {
	case len(v2) == 0 && len(v1) == 0:
		return "", false, nil
	case len(v2) > 0 && len(v1) > 0:
		return "", true, malformed(CodePayload, "The request carries both PAYMENT-SIGNATURE and X-PAYMENT. Send PAYMENT-SIGNATURE (x402 v2) alone.")
	case len(v1) > 0:
		return "", true, malformed(CodeVersion, "This server accepts PAYMENT-SIGNATURE (x402 v2), not X-PAYMENT (x402 v1).")
	case len(v2) > 1:
		return "", true, malformed(CodePayload, "The request carries PAYMENT-SIGNATURE more than once.")
	}
	return v2[0], true, nil
}

// Decode reads the value of PAYMENT-SIGNATURE. Every error is a refusal for payment_malformed whose text is ours: it never holds a part of the
// header or of a decoder's error.
func Decode(header string) (Payload, error) {
	root, err := decodeHeader(header)
	if err != nil {
		return Payload{}, err
	}
	o := object{"", root}
	if err := checkVersion(o); err != nil {
		return Payload{}, err
	}
	accepted, err := o.object("accepted")
	if err != nil {
		return Payload{}, malformed(CodePayload,
			"accepted must be an object: the chosen entry of accepts in PAYMENT-REQUIRED, echoed whole.")
	}
	var p Payload
	if p.Accepted, err = readAccepted(accepted); err != nil {
		return Payload{}, err
	}
	if p.ResourceURL, err = readResourceURL(o); err != nil {
		return Payload{}, err
	}
	if err := p.readIdentifier(o); err != nil {
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

func decodeHeader(header string) (wire.Value, error) {
	root, err := wire.DecodeObject(header, headerBytesReadMax)
	switch {
	case err == nil:
		return root, nil
	case errors.Is(err, wire.ErrEmpty):
		return wire.Value{}, malformed(CodePayload, "PAYMENT-SIGNATURE is empty.")
	case errors.Is(err, wire.ErrTooLong):
		return wire.Value{}, malformed(CodePayload, "PAYMENT-SIGNATURE is longer than %d bytes.", headerBytesReadMax)
	case errors.Is(err, wire.ErrNotBase64):
		return wire.Value{}, malformed(CodePayload, "PAYMENT-SIGNATURE is not base64.")
	case errors.Is(err, wire.ErrDuplicateKey):
		return wire.Value{}, malformed(CodePayload, "The JSON in PAYMENT-SIGNATURE has an object in which a member occurs twice.")
	case errors.Is(err, wire.ErrTooDeep):
		return wire.Value{}, malformed(CodePayload, "The JSON in PAYMENT-SIGNATURE nests more than %d levels deep.", wire.DepthMax)
	case errors.Is(err, wire.ErrNotObject):
		return wire.Value{}, malformed(CodePayload, "The JSON in PAYMENT-SIGNATURE is not an object.")
	}
	return wire.Value{}, malformed(CodePayload, "PAYMENT-SIGNATURE is not base64 of JSON in UTF-8.")
}

// checkVersion takes the integer 2 in its one spelling: a version that another reader may take for another one must not pass.
func checkVersion(o object) error {
	if v := o.Members["x402Version"]; v.Kind != wire.Number || v.Text != "2" {
		return malformed(CodeVersion, "x402Version must be the number 2.")
	}
	return nil
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
	return p.readSignature(payload)
}
