// Package delivery is the paid path: one function, Path.Call, walks a call through its steps in the order of
//
//	admit     decode the payment header, match it to our own terms, verify it locally
//	classify  is the caller's input acceptable?
//	probe     does the service answer its liveness probe?
//	capacity  has the service room for one more call?
//	settle    claim the payment, then move the money
//	derive    what a refund of this payment is
//	cooldown  is the service cooling down?
//	ask       call the upstream
//	record    one recorder writes the outcome and everything that follows from it
//	answer    the caller gets the result, or what went wrong and where the money is
//
// Path.Trial is the same walk without admit, settle and derive. Path.Quote is what an unpaid request gets.
//
// A paid call is three commits: the claim (payment.Store.Claim) before the authorization is shown to anybody, the settlement
// (settledSQL), and the outcome (Recorder). Recorder alone writes deliveries, strikes and cooldowns for calls, and owes refunds.
//
// Review alone takes strikes and cooldowns back: void, uphold, relist and suspend, by people and by the program about its own outages. Recorder and
// Review lock the service's row before anything else, so that each sees the whole of what the other did.
//
// From the claim on, a call runs on contexts and deadlines of its own: a caller that leaves changes nothing. Only a stream that has begun ends
// with its caller, who pays for it: what goes out as it comes is kept nowhere, and it alone leaves before its record.
package delivery
