package payment

import (
	"errors"

	"market/internal/refusal"
	"market/internal/wire"
)

// ReadRequirements reads what a seller asks for, as a facilitator gets it beside the payment: an entry of a challenge's accepts, in the form of
// the payment's version. In version 1 its Network is a short name. Every error is a refusal for payment_malformed whose text is ours: it never
// holds a part of what was sent.
func ReadRequirements(version Version, root wire.Value) (Accepted, error) {
	o := object{"paymentRequirements.", root}
	var (
		a   Accepted
		err error
	)
	switch version {
	case V1:
		a, err = readEntry(o, object.v1Network, "maxAmountRequired")
	case V2:
		a, err = readAccepted(o)
	default:
		err = malformed(CodeVersion, "x402Version must be the number 1 or the number 2.")
	}
	// What is wrong with the seller's terms is no fault of the payload.
	if no, ok := errors.AsType[*refusal.Error](err); ok && CodeOfError(err) == CodePayload {
		return Accepted{}, malformed(CodeRequirements, "%s", no.Detail)
	}
	return a, err
}
