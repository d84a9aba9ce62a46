// Package apptest starts a whole marketplace for a test: its own database, its own chain, the builder of production, and services that do
// what the test tells them. Everything is seen from outside, over HTTP, and from the chain.
package apptest
