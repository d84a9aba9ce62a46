package payout

import (
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"market/internal/chain"
	"market/internal/money"
)

// A State is where a payout stands.
type State string

const (
	StateOwed      State = "owed"
	StateSent      State = "sent"
	StateConfirmed State = "confirmed"
	StateParked    State = "parked"
	StateCancelled State = "cancelled" // before anything was signed
)

// A Purse is whose money it is, and where it lies.
type Purse struct {
	Account  uuid.UUID
	Network  string // CAIP-2
	Asset    common.Address
	Treasury common.Address // that received it, and signs
}

// A Payout is one row.
type Payout struct {
	ID uuid.UUID
	Purse
	Number      int64 // from 1, without gaps, of an account and an asset
	Amount      money.Amount
	Address     common.Address // that is paid
	Nonce       common.Hash
	FromBlock   uint64 // it has not left before
	State       State
	Held        bool   // by an admin
	Stopped     string // why nothing may be sent to the account at the moment; empty: it may
	Why         string // of the last attempt, for people
	WaitsFor    string // the source that takes no work now; empty: none
	Waiting     bool   // for that source, and its time has not come
	Attempts    int
	MadeAt      time.Time
	MadeBy      string
	Signed      bool // it may have left
	Transaction common.Hash
	ConfirmedAt time.Time
}

// Nonce returns the nonce of the authorization that pays a payout:
// keccak256("market/payout/1" ‖ chain id as uint256 ‖ asset ‖ account id ‖ number as uint256).
func Nonce(chainID uint64, asset common.Address, account uuid.UUID, number int64) common.Hash {
	return crypto.Keccak256Hash([]byte("market/payout/1"),
		common.LeftPadBytes(new(big.Int).SetUint64(chainID).Bytes(), 32), asset[:], account[:],
		common.LeftPadBytes(big.NewInt(number).Bytes(), 32))
}

// expect is the transfer that proves the payout.
func (p Payout) expect() chain.Expect {
	return chain.Expect{Asset: p.Asset, From: p.Treasury, To: p.Address, Value: p.Amount, Nonce: p.Nonce}
}

// authorization is the message that pays it to an address until validBefore.
func (p Payout) authorization(to common.Address, validBefore uint64) chain.Authorization {
	return chain.Authorization{From: p.Treasury, To: to, Value: p.Amount, ValidBefore: validBefore, Nonce: p.Nonce}
}

// Ended says that nothing is done for it any more.
func (p Payout) Ended() bool { return p.State == StateConfirmed || p.State == StateCancelled }
