// Package caller is the paying side of x402 v2: it asks, reads the challenge, pays once and brings back the answer. It is what
// `market call`, the demo and tests call services with.
//
// It trusts no server. It pays only in assets whose worth it knows, never more than it was told, signs at most one authorization for a
// call, and never follows a redirect. A payment that was sent and not answered may still be taken: UnclearError carries it, and sending the
// same one again with DoWith can not pay twice.
//
// Units: prices are money.Amount in base units of the asset and decimal US dollars; sizes are bytes.
package caller
