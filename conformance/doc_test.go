// Package conformance runs official x402 software from npm, unmodified and with its default settings, against ours: clients against our
// server, our server against their facilitator, their servers against our facilitator, and the dollar token of Circle in place of ours.
// cases.json names every case. Amounts are base units of the token (1 USDC = 1_000_000).
package conformance
