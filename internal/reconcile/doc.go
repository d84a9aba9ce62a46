// Package reconcile holds what the chain says of our treasuries against what we say, log by log, as of a block that is final.
//
// Terms:
//
//	wallet      one asset in one treasury on one network. Its reconciliation begins at an opening block, with what was there
//	transfer    a log by which a wallet got money or gave some away; its partner is the row of ours that says why: a call, a refund or an entry of the books
//	suspicion   what one look finds different. Most are no difference: a payment stands on the chain a moment before its row says so
//	difference  a suspicion that has lasted, by the database's clock and in several looks, so that neither a slow row nor a clock that is put forward makes one
//
// Four comparisons together say that the books are what the wallet holds: the logs add up to the wallet, every log has its row, every final row has its log,
// and the books have moved what the rows say. Each of them names what is wrong with it.
//
// Amounts are base units. Times are the database's (market_now()).
package reconcile
