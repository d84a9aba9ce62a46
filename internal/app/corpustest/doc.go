// Package corpustest is the labelled corpus: calls as they happen to a market, each with what has to become of it. A row says what happens (the
// service's doing, ours, the chain's, the caller's, in any order and at any time) and how the last call ends: outcome, reason and party, what the
// caller gets, the strikes and the rest of the service afterwards, whether it is still listed, and what the chain has moved. All of it is done
// and seen from outside, over HTTP and on the chain, at the market as it is put together in production.
//
// A reason that a call can end with and that no row comes to fails the tests.
//
// The table of all rows is docs/corpus.md, written by `go test ./internal/app/corpustest -run TestDocs -update`.
package corpustest
