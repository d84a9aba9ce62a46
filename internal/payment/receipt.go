package payment

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/chain"
)

// receiptKey names the extension by which a server signs what it offers and what it was paid for.
const receiptKey = "offer-receipt"

// statementVersion is the only one that there is of each statement.
const statementVersion = 1

// A Statement is something that the wallet which takes the money says and signs. Its types are fixed, so they are hashed by hand; a test
// compares the hashes with go-ethereum's general implementation.
type Statement interface {
	domain() chain.StatementDomain
	hash() common.Hash
}

var (
	offerDomain   = chain.NewStatementDomain("x402 offer")
	receiptDomain = chain.NewStatementDomain("x402 receipt")
	outcomeDomain = chain.NewStatementDomain("market outcome receipt")

	offerTypeHash = typeHash("Offer(uint256 version,string resourceUrl,string scheme,string network,string asset,string payTo,string amount," +
		"uint256 validUntil)")
	receiptTypeHash = typeHash("Receipt(uint256 version,string network,string resourceUrl,string payer,uint256 issuedAt,string transaction)")
	outcomeTypeHash = typeHash("OutcomeReceipt(uint256 version,string network,string resourceUrl,string payer,uint256 issuedAt,string transaction," +
		"string call,string outcome,string reason,string amount,string asset,string refundState,string refundNonce)")
)

// SignedTerms are the terms of one way to pay for a resource, until a time: the payload of an x402 offer.
type SignedTerms struct {
	Version     uint64 `json:"version"`
	ResourceURL string `json:"resourceUrl"`
	Scheme      string `json:"scheme"`
	Network     string `json:"network"` // CAIP-2
	Asset       string `json:"asset"`
	PayTo       string `json:"payTo"`
	Amount      string `json:"amount"`     // base units of the asset
	ValidUntil  uint64 `json:"validUntil"` // Unix seconds
}

func (SignedTerms) domain() chain.StatementDomain { return offerDomain }

func (t SignedTerms) hash() common.Hash {
	return hashStruct(offerTypeHash, t.Version, t.ResourceURL, t.Scheme, t.Network, t.Asset, t.PayTo, t.Amount, t.ValidUntil)
}

// A Receipt says that a payer paid for a resource and was served: the payload of an x402 receipt.
type Receipt struct {
	Version     uint64 `json:"version"`
	Network     string `json:"network"` // CAIP-2
	ResourceURL string `json:"resourceUrl"`
	Payer       string `json:"payer"`
	IssuedAt    uint64 `json:"issuedAt"` // Unix seconds
	Transaction string `json:"transaction"`
}

func (Receipt) domain() chain.StatementDomain { return receiptDomain }

func (r Receipt) hash() common.Hash {
	return hashStruct(receiptTypeHash, r.Version, r.Network, r.ResourceURL, r.Payer, r.IssuedAt, r.Transaction)
}

// An OutcomeReceipt says how a call ended that was paid for and not served, and what is owed for it. x402 has no word for that, so the
// form is our own. RefundState says what was owed when the call ended and not how far it has been sent: RefundNonce is the nonce of the
// authorization that pays it back, which anybody may look up in the token (authorizationState of the signer and the nonce).
type OutcomeReceipt struct {
	Version     uint64 `json:"version"`
	Network     string `json:"network"` // CAIP-2
	ResourceURL string `json:"resourceUrl"`
	Payer       string `json:"payer"`
	IssuedAt    uint64 `json:"issuedAt"`    // Unix seconds; when the outcome was recorded
	Transaction string `json:"transaction"` // that moved the payment; empty where none did
	Call        string `json:"call"`
	Outcome     string `json:"outcome"`
	Reason      string `json:"reason"`
	Amount      string `json:"amount"` // base units of the asset
	Asset       string `json:"asset"`
	RefundState string `json:"refundState"` // one of the Refund… words
	RefundNonce string `json:"refundNonce"` // empty where nothing is owed
}

// What an outcome receipt says of the refund.
const (
	RefundOwed = "owed" // the whole amount goes back to the payer
	RefundNone = "none" // no money moved, so none goes back
	RefundVoid = "void" // the chain itself took the payment back, or it never came
)

func (OutcomeReceipt) domain() chain.StatementDomain { return outcomeDomain }

func (r OutcomeReceipt) hash() common.Hash {
	return hashStruct(outcomeTypeHash, r.Version, r.Network, r.ResourceURL, r.Payer, r.IssuedAt, r.Transaction, r.Call, r.Outcome, r.Reason,
		r.Amount, r.Asset, r.RefundState, r.RefundNonce)
}

func typeHash(of string) common.Hash { return crypto.Keccak256Hash([]byte(of)) }

// hashStruct is the EIP-712 hash of a struct that has strings and uint256 members only, in the order of its type.
func hashStruct(of common.Hash, members ...any) common.Hash {
	const word = 32
	b := make([]byte, word*(1+len(members)))
	copy(b, of[:])
	for i, m := range members {
		at := b[word*(1+i) : word*(2+i)]
		switch m := m.(type) {
		case uint64:
			binary.BigEndian.PutUint64(at[word-8:], m)
		case string:
			copy(at, crypto.Keccak256([]byte(m)))
		default:
			panic("payment: a statement has strings and numbers only") // of our own types, so a test would meet it
		}
	}
	return crypto.Keccak256Hash(b)
}
