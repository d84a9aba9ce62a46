package chain

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
)

// A Proof is where the transfer of an authorization stands on the chain: the Transfer log that directly follows the authorization's
// AuthorizationUsed log of the same asset in the same transaction. Nothing else proves a settlement.
type Proof struct {
	Transaction common.Hash
	LogIndex    uint // of the Transfer log, counted over its block
	BlockNumber uint64
	BlockHash   common.Hash
}

// A Status says what became of an attempt to settle.
type Status int

const (
	_              Status = iota
	StatusSettled         // proved at the depth that was asked for
	StatusReleased        // provably nothing left us: the authorization may be used again
	StatusRejected        // shown to the chain, and it proved to have no effect
	StatusUnknown         // shown, and not proved either way
	StatusSaid            // a facilitator says so, and whoever asked goes on with its word alone
)

// A Settlement is the result of an attempt to settle one authorization.
type Settlement struct {
	Status Status
	Proof  Proof // when settled
	// ByUs is that it was settled by what this very attempt did: by a transaction that it made, or one that a facilitator answered it with. Only that proves that
	// whoever settles still works for us: anybody else can put an authorization that was signed, and a transaction that was made before, on the chain.
	ByUs bool
	// Transaction is the one that carries the authorization, as far as one was sent.
	Transaction common.Hash
	// Why is x402's official code where the status is not settled, "insufficient_funds" for example.
	Why string
	// PayerFault says whether a released or rejected authorization could not pay by the payer's own doing (funds, nonce used, blocklisted),
	// as opposed to a failure of the rail.
	PayerFault bool
	Err        error // for the log
}

// A Word is what a facilitator says of an authorization, and nobody has proved: that it has settled it.
type Word struct {
	Of          string      // the facilitator's name in our configuration
	Transaction common.Hash // that it names
}

// Believe says whether somebody goes on with a word. It may write that down, so a word that it has said yes to is not proved any further.
type Believe func(ctx context.Context, w Word) bool
