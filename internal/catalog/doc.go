// Package catalog holds what providers sell: services, their endpoints, prices and price revisions, and whether a service is on the
// shelf. It reads and checks listings (ParseDraft), keeps them (Store), holds all of them in memory for the request path (Catalog,
// Snapshot), matches a request's path to an endpoint (Snapshot.Route) and checks a caller's input (Endpoint.CheckInput).
//
// Whether a service is for sale is its State. Moves has every change that may happen, for which cause and by whom; the database writes an Event for
// each. Edits (Store.EditService, Store.EditEndpoint) leave a Revision.
//
// It asks no service anything, and it does not decide who is delisted: see upstream and strikes.
//
// Units:
//
//	prices   US dollars as decimals; base units are made where a payment is matched
//	timeout  time.Duration in Go, whole milliseconds in JSON and Postgres
//	sizes    bytes
//	paths    the escaped form, as on the wire; nothing here decodes a path before it is cut at its slashes
package catalog
