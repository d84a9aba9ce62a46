// Package letter keeps what the provider of a service is told of it, and sends it: by mail and by webhook, to where the listing says.
//
// A letter is written in the transaction that does what it tells of, so nobody is told of what did not happen, and nothing that happened is kept from its
// provider. For each channel that the listing names there is a row that says what became of sending it there. It is sent at least once, each time
// under the same id. What fails is tried again over a day and then given up; it is shown, and can be sent again by hand.
//
// Users know a letter as a notice. The notices of package notify are for the operator.
//
// Times are the database's (market_now()).
package letter
