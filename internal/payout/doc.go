// Package payout is what we owe providers and how it gets to them. A payout takes the provider's postings of calls whose payment is final, each of them once,
// and is one transfer of the treasury that holds their money to the address that the provider has given.
//
// The transfer is an EIP-3009 authorization of the treasury whose nonce follows from whose it is and from its number, so it can be sent by any replica, any
// number of times, and happens at most once by construction of the token.
//
//	owed -> sent -> confirmed        sent: signed and shown; confirmed: its log stands at the configured depth
//	sent -> owed                     everything that was signed has lapsed, and it may not be sent now
//	owed, sent -> parked -> owed     treasury short, recipient blocklisted: tried again now and then, never dropped
//	owed, parked -> cancelled        before the first signature alone; its postings are there for the next one
//
// Making one is one statement, and the database guards it: a posting is in one payout at a time, a payout's amount is the sum of its postings, and what is
// confirmed is in the books. The Worker sends it. Amounts are base units, times of authorizations Unix seconds, every other time the database's.
package payout
