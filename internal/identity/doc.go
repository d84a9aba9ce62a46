// Package identity says who asks: wallets that sign in with Ethereum (EIP-4361), the sessions and API keys that they get for it, and which of them are
// admins.
//
//	SignIns    hands out messages to sign and opens sessions for signatures: of keys, and of contract wallets by their own word (ERC-1271)
//	Store      sessions, keys, accounts, addresses, admins: rows
//	Board      the owners of services in memory, for the paid path
//	Principal  who asks, and what for he may
//
// An account is a wallet. The tokens of sessions and keys are random, shown once, and kept as digests. The role of an admin is read with each request,
// so it ends with the next one, whatever was handed out before. An API key has no role: an admin uses a session or the admin token.
//
// What is one request's business and what a network may do in a while is limited by the door; what strangers can have us keep is limited here.
//
// Times that processes compare are the database's (market_now()).
package identity
