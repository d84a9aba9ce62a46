// Package remote is a client of the standard x402 facilitator API: /supported, /verify and /settle, for kinds of both versions. What it
// sends is built from our own terms, and what comes back is a stranger's word: its size is capped before it is decoded, its shape is
// checked, and each oddity has a type. Whether the word is true is for the caller to find out from a node of its own.
//
// Units: sizes in bytes, validity of tokens in seconds.
package remote
