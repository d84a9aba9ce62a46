package payment

// Match finds the offer that a payment answers: the first that equals what the payment says it accepted, or, in version 1, what it pays. Offers of
// older prices that are still acceptable are passed along with the current ones. The error is a refusal for payment_mismatch that names the
// first difference from the nearest offer. ResourceURL is ours for the endpoint that was called, and advertised what its challenge says of
// extensions.
func Match(p Payload, offers []Offer, resourceURL string, advertised Advertised) (Offer, error) {
	if p.ResourceURL != "" && !sameResource(p.ResourceURL, resourceURL) {
		return Offer{}, mismatch(CodeRequirements, "resource.url names another resource than the one that was called.")
	}
	if err := p.checkEcho(advertised); err != nil {
		return Offer{}, err
	}
	var nearest difference
	var at Offer
	for _, o := range offers {
		d := compare(p, o)
		if d == same {
			return o, nil
		}
		if d > nearest {
			nearest, at = d, o
		}
	}
	if p.Version == V1 {
		return Offer{}, nearest.refusalV1(at)
	}
	return Offer{}, nearest.refusal(at)
}

// A difference is the first member in which an entry is not our offer; later ones are nearer to it.
type difference int

const (
	_ difference = iota // no offer was compared
	differentScheme
	differentNetwork
	differentAsset
	differentPayTo
	differentAmount
	differentTimeout
	missingName
	differentName
	missingVersion
	differentVersion
	differentFlow
	same
)

func compare(p Payload, o Offer) difference {
	switch {
	case p.Scheme != scheme:
		return differentScheme
	case p.Network != o.Network:
		return differentNetwork
	case p.Asset != o.Asset.Address:
		return differentAsset
	case p.Version == V1:
		return compareSigned(p, o)
	}
	return compareAccepted(p.Accepted, o)
}

// compareSigned is all that there is to compare in version 1, which echoes no terms: whom the authorization pays, and how much.
func compareSigned(p Payload, o Offer) difference {
	switch {
	case p.To != o.PayTo:
		return differentPayTo
	case p.Value.Cmp(o.Amount) != 0:
		return differentAmount
	}
	return same
}

// compareAccepted takes any time within our bounds: it is the endpoint's timeout when the terms were quoted, which its owner may have changed since.
// How long the authorization itself may live is CheckTerms' to say, by the timeout of now.
func compareAccepted(a Accepted, o Offer) difference {
	switch {
	case a.PayTo != o.PayTo:
		return differentPayTo
	case a.Amount.Cmp(o.Amount) != 0:
		return differentAmount
	case a.MaxTimeoutSeconds < 1 || a.MaxTimeoutSeconds > timeoutSecondsMax:
		return differentTimeout
	}
	return compareExtra(a, extraOf(o))
}

// compareExtra asks for every member of ours; what else the client put there is its own.
func compareExtra(a Accepted, ours extra) difference {
	if name, ok := a.Extra("name"); !ok {
		return missingName
	} else if name != ours.Name {
		return differentName
	}
	if version, ok := a.Extra("version"); !ok {
		return missingVersion
	} else if version != ours.Version {
		return differentVersion
	}
	if flow, ok := a.Extra("paymentFlow"); !ok || flow != ours.PaymentFlow {
		return differentFlow
	}
	return same
}

// refusal says what our offer has there. What the client sent is not repeated.
func (d difference) refusal(o Offer) error {
	switch d {
	case differentScheme:
		return mismatch(CodeScheme, "accepted.scheme must be %q.", scheme)
	case differentNetwork:
		return mismatch(CodeNetwork, "accepted.network is none that this endpoint can be paid on.")
	case differentAsset:
		return mismatch(CodeRequirements, "accepted.asset must be %s on %s.", o.Asset.Address, o.Network)
	case differentPayTo:
		return mismatch(CodeRequirements, "accepted.payTo must be %s.", o.PayTo)
	case differentAmount:
		return mismatch(CodeRequirements, "accepted.amount is not a price of this endpoint; its price now is in PAYMENT-REQUIRED.")
	case differentTimeout:
		return mismatch(CodeRequirements, "accepted.maxTimeoutSeconds must be what PAYMENT-REQUIRED has there, which is %d now.", o.MaxTimeoutSeconds)
	case missingName:
		return mismatch(CodeDomainMissing, "accepted.extra.name is missing; it must be %q.", o.Asset.EIP712Name)
	case differentName:
		return mismatch(CodeDomainName, "accepted.extra.name must be %q: that is the token's own EIP-712 name on %s.", o.Asset.EIP712Name, o.Network)
	case missingVersion:
		return mismatch(CodeDomainMissing, "accepted.extra.version is missing; it must be %q.", o.Asset.EIP712Version)
	case differentVersion:
		return mismatch(CodeDomainVersion, "accepted.extra.version must be %q: that is the token's own EIP-712 version on %s.", o.Asset.EIP712Version, o.Network)
	case differentFlow:
		return mismatch(CodeRequirements, "accepted.extra.paymentFlow must be %q: the payment is settled before the work.", paymentFlow)
	case same:
	}
	return mismatch(CodeRequirements, "This endpoint has no offer that a payment could answer.")
}

// refusalV1 says it of a payment of version 1, whose members stand elsewhere.
func (d difference) refusalV1(o Offer) error {
	switch d {
	case differentScheme:
		return mismatch(CodeScheme, "scheme must be %q.", scheme)
	case differentNetwork:
		return mismatch(CodeNetwork, "network is none that this endpoint can be paid on.")
	case differentAsset:
		return mismatch(CodeRequirements, "The payment is in another asset than %s on %s.", o.Asset.Address, o.Network)
	case differentPayTo:
		return mismatch(CodeRecipient, "payload.authorization.to must be %s.", o.PayTo)
	case differentAmount:
		return mismatch(CodeValue, "payload.authorization.value is not a price of this endpoint; its price now is in the body, as maxAmountRequired.")
	case differentTimeout, missingName, differentName, missingVersion, differentVersion, differentFlow, same: // not compared
	}
	return mismatch(CodeRequirements, "This endpoint has no offer that a payment could answer.")
}
