// Package ledger keeps the books: double entry, for each network, asset and treasury. A transaction is a set of postings that sum to zero; books are only
// added to, and the database refuses everything else.
//
// What calls and refunds move is posted by the database itself, in the transaction that moves it (migration 0031). The view ledger_positions says what the
// books must hold for one call, as a pure function of its rows, and a trigger at the end of each transaction that touched one of them posts what is missing. So
// nobody who writes a call, a delivery or a refund has to know this package, and none of them can forget it. What the operator books by hand is an Entry.
//
// Units: amounts are base units of the asset, a debit positive and a credit negative. The balance of treasury is what the treasury should have, so it is positive
// as a rule, and what is owed to somebody (provider, fees, refunds_payable, pending) is negative. Times are the database's (market_now()).
package ledger
