package ledger

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/money"
)

// An Account is one side of what money can be for. The zero value is none.
type Account string

const (
	Treasury       Account = "treasury"        // what the treasury's wallet should have of the asset
	Pending        Account = "pending"         // paid, and the call has no outcome yet
	Provider       Account = "provider"        // the shares of providers; each posting says whose
	Fees           Account = "fees"            // what the market has earned
	RefundsPayable Account = "refunds_payable" // owed to callers until the transfer back is final
	Losses         Account = "losses"          // what was served and never paid, or paid out and taken back by the chain
	Suspense       Account = "suspense"        // what nobody can explain yet
	Operator       Account = "operator"        // what the operator put in
)

// Accounts returns every account, in the order in which they are shown.
func Accounts() []Account {
	return []Account{Treasury, Pending, Provider, Fees, RefundsPayable, Losses, Suspense, Operator}
}

// Valid says whether the account is one of them.
func (a Account) Valid() bool { return slices.Contains(Accounts(), a) }

// A Transfer is the log of the token that a posting stands for. The zero value is none.
type Transfer struct {
	Transaction common.Hash
	LogIndex    uint
	Block       uint64
}

// A Posting is one line of a transaction.
type Posting struct {
	Transaction int64 // of the books, in the order of writing
	Account     Account
	Owner       uuid.UUID // whose share it is, in the account provider; zero: of a seller without an account
	Amount      money.Signed
	Transfer    Transfer
}

// A Balance is what one account holds of one asset in one treasury.
type Balance struct {
	Network  string
	Asset    common.Address
	Treasury common.Address
	Account  Account
	Amount   money.Signed
}
