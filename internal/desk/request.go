package desk

import (
	"errors"
	"io"

	"market/internal/call"
	"market/internal/payment"
	"market/internal/refusal"
	"market/internal/wire"
)

// bodyBytesMax is four times the longest payment header that we take elsewhere; a usual body has 2 KiB.
const bodyBytesMax = 64 << 10

// A request is a body of /verify or /settle.
type request struct {
	payload  payment.Payload
	required payment.Accepted // what the seller asks for; in version 1 its network is a short name
}

// errTooLarge is a body over the limit.
var errTooLarge = errors.New("the body is too large")

// readBody reads no more than one byte over the limit.
func readBody(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, bodyBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(data) > bodyBytesMax {
		return nil, errTooLarge
	}
	return data, nil
}

// decode reads a body of either version, whose length is checked. Every error is a refusal for payment_malformed whose text is ours: it never holds a part of the body.
func decode(body []byte) (request, error) {
	root, err := wire.Parse(body)
	if err != nil {
		return request{}, malformed(payment.CodePayload, "The body must be one JSON object: %s.", wordOf(err))
	}
	payload, requirements := root.Members["paymentPayload"], root.Members["paymentRequirements"]
	switch {
	case payload.Kind != wire.Object:
		return request{}, malformed(payment.CodePayload, "paymentPayload must be an object.")
	case requirements.Kind != wire.Object:
		return request{}, malformed(payment.CodeRequirements, "paymentRequirements must be an object.")
	}
	// Two places name the version. Where they differ, two readers would take the payment for two different ones.
	if outer, inner := root.Members["x402Version"], payload.Members["x402Version"]; outer.Kind != inner.Kind || outer.Text != inner.Text {
		return request{}, malformed(payment.CodeVersion, "x402Version must be the number 1 or 2, and the same in the body and in paymentPayload.")
	}
	var rq request
	if rq.payload, err = payment.Read(payload); err != nil {
		return request{}, err
	}
	if rq.required, err = payment.ReadRequirements(rq.payload.Version, requirements); err != nil {
		return request{}, err
	}
	return rq, nil
}

func wordOf(err error) string {
	switch {
	case errors.Is(err, wire.ErrDuplicateKey):
		return "a member occurs twice"
	case errors.Is(err, wire.ErrTooDeep):
		return "it nests too deep"
	}
	return "it is not JSON in UTF-8"
}

func malformed(code payment.Code, format string, args ...any) error {
	return refusal.New(call.PaymentMalformed, format, args...).WithCause(code)
}
