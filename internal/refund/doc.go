// Package refund is what we owe callers and how it gets back to them. A refund is the whole of one settled payment, in the same asset on
// the same network, to the address that paid, from the treasury that received it. It is derived from the payment, never from a listing.
//
// The transfer is an EIP-3009 authorization of the treasury whose nonce follows from the payment's identity, so it can be sent by any
// replica, any number of times, and happens at most once by construction of the token.
//
//	owed -> sent -> confirmed        sent: signed and shown; confirmed: its log stands at the configured depth
//	owed, sent -> parked -> owed     treasury short, recipient blocklisted: tried again now and then and when an admin says so, never dropped
//
// Package delivery owes a refund in the transaction that records the outcome; the Worker here pays it. Amounts are base units, times of
// authorizations Unix seconds, every other time the database's.
package refund
