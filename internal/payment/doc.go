// Package payment speaks x402: the challenge that names our terms, the payment that a caller sends back, and whether the two fit. It
// reads and checks only, so everything here but the claim is a function of values; settling is the facilitator's business.
//
// A paid request is judged in this order, each step with an error of its own reason:
//
//	FromHeaders   is it a payment at all, and one?    payment_malformed
//	Match         does it answer one of our offers?   payment_mismatch
//	Identify      did the payer sign it?              payment_invalid
//	CheckTerms    for us, the price, the time?        payment_invalid
//
// Both versions of x402 are one Payload from FromHeaders on. What version 1 leaves out is filled in by us: Normalize turns its short name
// of a network into the CAIP-2 id, and In sets the asset that Identify found its signature to be for.
//
// Identify needs no Match: a payment whose signature holds names a call that may be known already, and that has to be looked up before
// the request is refused for any reason, Match's included.
//
// The terms are always ours. What a caller echoes in `accepted` is compared and never used.
//
// Units: amounts are money.Amount in base units of the asset; times are Unix seconds of the chain; sizes are bytes.
package payment
