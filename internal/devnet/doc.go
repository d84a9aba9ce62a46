// Package devnet runs a development chain inside the process: go-ethereum with a simulated beacon, behind real JSON-RPC over HTTP on
// the loopback address, with the test token of package contracts where Base Sepolia has its USDC. It is for cmd/demo and for tests;
// nothing that faces a real network may import it.
//
// # Pace
//
// A block may not share its parent's second, so a chain that mines whenever something is sent runs ahead of the wall clock, and
// authorizations expire early; one that mines only then stands still when idle, and clients that trust its clock sign in the past.
// So: one block for each second of wall time, empty or not; what is sent is mined at once while that leaves the head at most
// Options.Burst seconds ahead; past it, again one block a second. An idle chain that is ahead mines every other second, so depth still
// comes and the lead melts away.
//
// # Units
//
//	time     Unix seconds; Burst is a number of seconds
//	amounts  money.Amount, base units of the token (1 USDC = 1_000_000)
//	gas      wei
package devnet
