// Package answer keeps what was answered to a served call, so that its caller can fetch it again: a connection may break after the money
// moved. It is kept for a day or as the operator says, encrypted, and given out only to who proves to be the caller. The service is never asked a second time.
//
// Once mined, a payment's signature is public: it tells which call is meant and nothing about who asks. So a proof is something that is on
// no chain: the name that the caller gave its payment, a sign-in with the payer's key, or, for a short while, the address that the
// call came from.
//
// The row is written by the statement that records the call as served (package delivery), from the bytes that Seal returns: an answer that was
// sent is kept, and no other. Time is the database's (market_now()). Sizes are bytes.
package answer
