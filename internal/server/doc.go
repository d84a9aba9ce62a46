// Package server is the door: routes, middleware, problem documents. A handler parses, makes one call and writes what came back; no
// policy, no SQL and no decision about money is here.
//
// Every error ends in one place (problem.go), which maps a reason to an HTTP status. Errors other than the 402 challenge are
// application/problem+json (RFC 9457).
package server
