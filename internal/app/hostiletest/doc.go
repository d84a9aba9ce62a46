// Package hostiletest plays a provider that means ill: a server on raw TCP, TLS, HTTP/2 and DNS that does what no honest library lets a server
// do, one thing a row. Each row is a real paid call through the running marketplace, with its own Postgres and the development chain, and is held
// against what the row says: outcome, reason, party, what the caller saw, what it cost, and what it did to the service.
//
// The table of all rows is docs/hostile.md, written by `go test ./internal/app/hostiletest -run TestDocs -update`.
package hostiletest
