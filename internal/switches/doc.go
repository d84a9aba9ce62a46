// Package switches keeps what the operator has stopped by hand: new paid work on a network, payouts, and what failures mean for services. A switch has
// one row, with who set it last, since when and why; what came before is in the audit.
//
// Package delivery sets a switch, in the transaction that also writes its entry of the audit. What decides at once, such as whether a failure counts,
// reads the row in the transaction that it decides in; the Board, which every process keeps in memory, may be late by a notification.
//
// Times are the database's (market_now()).
package switches
