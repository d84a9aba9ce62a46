package payment

import (
	"errors"
	"net/http"

	"market/internal/wire"
)

// Names of the headers of x402 v2, and of v1.
const (
	HeaderRequired   = "PAYMENT-REQUIRED"
	HeaderSignature  = "PAYMENT-SIGNATURE"
	HeaderResponse   = "PAYMENT-RESPONSE"
	HeaderV1Payment  = "X-PAYMENT"
	HeaderV1Response = "X-PAYMENT-RESPONSE"
)

// headerBytesReadMax caps a header before anything of it is decoded; an ordinary payment takes 1 to 2 KiB.
const headerBytesReadMax = 16 << 10

// Sent says whether a request carries a payment, good or bad. A header that is there counts even when it is empty: whoever sends one means to
// pay, and should learn that it did not arrive.
func Sent(h http.Header) bool {
	return len(h.Values(HeaderSignature)) > 0 || len(h.Values(HeaderV1Payment)) > 0
}

// FromHeaders reads the payment of a request: PAYMENT-SIGNATURE in version 2, X-PAYMENT in version 1. Some wallets send one payment under both names, and
// version 2 then rules; two that differ are refused, because paying by one and being served by the other is a way to cheat. Every error is a
// refusal for payment_malformed whose text is ours: it never holds a part of a header or of a decoder's error.
func FromHeaders(h http.Header) (Payload, error) {
	v2, v1 := h.Values(HeaderSignature), h.Values(HeaderV1Payment)
	switch {
	case len(v2) > 1:
		return Payload{}, malformed(CodePayload, "The request carries PAYMENT-SIGNATURE more than once.")
	case len(v1) > 1:
		return Payload{}, malformed(CodePayload, "The request carries X-PAYMENT more than once.")
	case len(v2) == 0 && len(v1) == 0:
		return Payload{}, malformed(CodePayload, "The request carries no payment.")
	case len(v1) == 0:
		return Decode(v2[0])
	case len(v2) == 0:
		return decodeV1(v1[0])
	}
	p, err := Decode(v2[0])
	if err != nil {
		return Payload{}, err
	}
	root, err := decodeHeader(HeaderV1Payment, v1[0])
	if err != nil {
		return Payload{}, err
	}
	twin, err := Read(root)
	if err != nil {
		return Payload{}, err
	}
	if !p.sameAs(twin) {
		return Payload{}, malformed(CodePayload, "PAYMENT-SIGNATURE and X-PAYMENT carry different payments. Send one of them.")
	}
	return p, nil
}

// sameAs compares all that is signed, and the signature.
func (p Payload) sameAs(q Payload) bool {
	return p.From == q.From && p.To == q.To && p.Value.Cmp(q.Value) == 0 && p.ValidAfter.Cmp(q.ValidAfter) == 0 &&
		p.ValidBefore.Cmp(q.ValidBefore) == 0 && p.Nonce == q.Nonce && p.Signature == q.Signature
}

// Decode reads the value of PAYMENT-SIGNATURE.
func Decode(header string) (Payload, error) { return decodeAs(V2, HeaderSignature, header) }

// decodeV1 reads the value of X-PAYMENT.
func decodeV1(header string) (Payload, error) { return decodeAs(V1, HeaderV1Payment, header) }

// decodeAs reads a header that is of one version whatever its payment says of itself: the version is ours to choose.
func decodeAs(version Version, name, header string) (Payload, error) {
	root, err := decodeHeader(name, header)
	if err != nil {
		return Payload{}, err
	}
	if v, err := readVersion(object{"", root}); err != nil || v != version {
		return Payload{}, malformed(CodeVersion, "%s is of x402 version %d: x402Version must be the number %d.", name, version, version)
	}
	return Read(root)
}

func decodeHeader(name, header string) (wire.Value, error) {
	root, err := wire.DecodeObject(header, headerBytesReadMax)
	switch {
	case err == nil:
		return root, nil
	case errors.Is(err, wire.ErrEmpty):
		return wire.Value{}, malformed(CodePayload, "%s is empty.", name)
	case errors.Is(err, wire.ErrTooLong):
		return wire.Value{}, malformed(CodePayload, "%s is longer than %d bytes.", name, headerBytesReadMax)
	case errors.Is(err, wire.ErrNotBase64):
		return wire.Value{}, malformed(CodePayload, "%s is not base64.", name)
	case errors.Is(err, wire.ErrDuplicateKey):
		return wire.Value{}, malformed(CodePayload, "The JSON in %s has an object in which a member occurs twice.", name)
	case errors.Is(err, wire.ErrTooDeep):
		return wire.Value{}, malformed(CodePayload, "The JSON in %s nests more than %d levels deep.", name, wire.DepthMax)
	case errors.Is(err, wire.ErrNotObject):
		return wire.Value{}, malformed(CodePayload, "The JSON in %s is not an object.", name)
	}
	return wire.Value{}, malformed(CodePayload, "%s is not base64 of JSON in UTF-8.", name)
}
