// Package chain speaks to one EVM network over JSON-RPC, for what the marketplace needs of it: EIP-3009 authorizations (hashing,
// signing, checking), the proof that a transfer happened, and the facts about payers and assets. It knows no call and no price.
//
// Units: amounts are money.Amount in base units of the asset; times of authorizations and blocks are Unix seconds; depth counts
// blocks, 1 being the head itself.
package chain
