package refund

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
)

// A Payment is what a refund is derived from: one proved settlement.
type Payment struct {
	Call        call.ID
	Network     string // CAIP-2
	ChainID     uint64
	Asset       common.Address
	Payer       common.Address
	Nonce       common.Hash
	Amount      money.Amount
	Treasury    common.Address // that received it
	Transaction common.Hash
}

// An Owed is the refund of one payment, not yet owed until it is written.
type Owed struct {
	Payment Payment
	Nonce   common.Hash
	// UnitOf names the source with which a unit is set aside for it: empty for none. See Units.
	UnitOf string
}

// Derive returns the refund of a payment.
func Derive(p Payment) Owed {
	return Owed{Payment: p, Nonce: Nonce(p.ChainID, p.Asset, p.Payer, p.Nonce)}
}

// Nonce returns the nonce of the authorization that refunds a payment:
// keccak256("market/refund/1" ‖ chain id as uint256 ‖ asset ‖ payer ‖ payment nonce).
func Nonce(chainID uint64, asset, payer common.Address, paymentNonce common.Hash) common.Hash {
	return crypto.Keccak256Hash([]byte("market/refund/1"),
		common.LeftPadBytes(new(big.Int).SetUint64(chainID).Bytes(), 32), asset[:], payer[:], paymentNonce[:])
}

// expectPayment is the transfer that proves the payment, expectRefund the one that proves its refund.
func (o Owed) expectPayment() chain.Expect {
	p := o.Payment
	return chain.Expect{Asset: p.Asset, From: p.Payer, To: p.Treasury, Value: p.Amount, Nonce: p.Nonce}
}

func (o Owed) expectRefund() chain.Expect {
	p := o.Payment
	return chain.Expect{Asset: p.Asset, From: p.Treasury, To: p.Payer, Value: p.Amount, Nonce: o.Nonce}
}

// authorization is the message that pays the refund until validBefore.
func (o Owed) authorization(validBefore uint64) chain.Authorization {
	p := o.Payment
	return chain.Authorization{From: p.Treasury, To: p.Payer, Value: p.Amount, ValidBefore: validBefore, Nonce: o.Nonce}
}
