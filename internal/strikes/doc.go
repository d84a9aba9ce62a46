// Package strikes keeps the evidence that takes a service off the shelf: strikes, each one incident of the service's own doing, with the
// deliveries that prove it.
//
// The counter is the rows, open strikes inside the window; there is no number to drift. Only package delivery writes here, in the
// transaction that records the delivery, or in that of a review. What a success clears is a clause of that package's served statement, which touches open
// strikes only and locks nothing.
//
// Times are the database's (market_now()); durations come from Policy.
package strikes
