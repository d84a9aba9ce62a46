// Package facilitator moves the money of signed authorizations. Engine is our own: it puts one authorization into one transaction,
// pays the gas and proves the transfer by its log. Failover tries several in order, ours and those of others (package remote), of whom it
// believes what our own node bears out.
//
// What it promises:
//
//	Signed bytes are in the database before anybody sees them, so nothing that left us is ever forgotten.
//	One authorization has at most one open transaction of a gas key; until that is mined its bytes are sent again, never others.
//	Nonces of a gas key are handed out by the database without gaps, to all replicas that share the key.
//	chain.StatusReleased is said only while nothing of the authorization has left us.
//
// Units: fees and balances in wei, gas in gas, depth in blocks with the head counting as 1.
package facilitator
