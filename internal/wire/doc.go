// Package wire reads and writes what x402 and its extensions put into HTTP headers: base64 of one JSON object.
//
// A header comes from a stranger. Its length is capped before anything of it is decoded, its depth before it is walked, and names are
// compared letter by letter, so that no two readers of one header see different things. Errors never hold a part of what was read.
//
// Units: sizes are bytes.
package wire
