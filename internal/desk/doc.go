// Package desk is the door of `market facilitator`: x402's facilitator API over our own engine, for sellers that are not of this
// marketplace. POST /verify and POST /settle ask for an API key, GET /supported does not.
//
// What it promises:
//
//	The seller's paymentRequirements are the authority; what the payment says it accepted is only compared with them.
//	A key settles to its own recipients and no others, in configured assets only, so nobody spends our gas on a token or a seller of his own.
//	One authorization is one transfer: the same /settle again gives the same answer, or waits for the transaction that is under way.
//	A payment that was verified for several sales settles for one of them, and one that is sold for upfront settles once.
//	A payment that the chain undid gets the same no again, and no second transaction.
//	What is not known is called settlement_pending with its transaction. It is never called a failure.
//
// HTTP 200 is a decision, yes or no. 4xx is a request that was not judged, 5xx is trouble of ours; both carry the body of a no, with a code.
//
// Units: sizes in bytes, rates in requests a minute, times of authorizations in Unix seconds of the chain.
package desk
