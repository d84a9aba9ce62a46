package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/money"
	"market/internal/postgres"
)

// An EntryKind is what the operator can book. The zero value is none.
type EntryKind string

const (
	TopUp         EntryKind = "top_up"         // the operator put money into a treasury: treasury to operator
	FeeWithdrawal EntryKind = "fee_withdrawal" // and took earned fees out of it: fees to treasury
	Moved         EntryKind = "moved"          // and moved some from one treasury into another: of each, with the operator
	Unexplained   EntryKind = "suspense"       // something came in that belongs to no call: treasury to suspense
)

// EntryKinds returns every kind.
func EntryKinds() []EntryKind { return []EntryKind{TopUp, FeeWithdrawal, Moved, Unexplained} }

// An Entry is one transfer that belongs to no call, as somebody booked it.
type Entry struct {
	Network  string
	Asset    common.Address
	Treasury common.Address
	To       common.Address // the other treasury, of what was moved; zero: of nothing else
	Kind     EntryKind
	Amount   money.Amount // above zero, whichever way it went
	Transfer Transfer
	Reason   string // for people; never empty
	By       string // who booked it; never empty
}

var (
	// ErrAboveFees is that more was to be withdrawn than the fees that are there.
	ErrAboveFees = errors.New("more than the fees that were earned")
	// ErrBooked is that an entry of the same transfer is there already.
	ErrBooked = errors.New("the transfer is booked already")
	// ErrEntry is an entry that leaves out what it has to say, or says what cannot be.
	ErrEntry = errors.New("not an entry")
)

// The row's trigger posts it, and bounds a withdrawal by the fees, whoever else withdraws.
const postSQL = `
INSERT INTO ledger_entries (network, asset, treasury, kind, amount, transaction, log_index, block_number, reason, by, to_treasury)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
RETURNING id`

// Post books an entry and returns its number. ErrAboveFees, ErrBooked and ErrEntry: nothing was written, and a transaction that db is has failed.
func (Store) Post(ctx context.Context, db postgres.DB, e Entry) (id int64, err error) {
	if e.Transfer.Transaction == (common.Hash{}) || e.Transfer.LogIndex > math.MaxInt32 || e.Transfer.Block > math.MaxInt64 {
		return 0, fmt.Errorf("book %s of %s: %w: its transfer", e.Kind, e.Amount, ErrEntry)
	}
	var to []byte
	if e.To != (common.Address{}) {
		to = e.To[:]
	}
	err = db.QueryRow(ctx, postSQL, e.Network, e.Asset[:], e.Treasury[:], e.Kind, e.Amount, e.Transfer.Transaction[:],
		int32(e.Transfer.LogIndex), int64(e.Transfer.Block), e.Reason, e.By, to).Scan(&id) //nolint:gosec // bounded above
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case refused.ConstraintName == "ledger_entries_within_fees":
			return 0, fmt.Errorf("book %s of %s: %w", e.Kind, e.Amount, ErrAboveFees)
		case refused.ConstraintName == "ledger_entries_transfer_unique":
			return 0, fmt.Errorf("book %s of %s: %w", e.Kind, e.Amount, ErrBooked)
		case refused.Code == checkViolation && refused.TableName == "ledger_entries":
			return 0, fmt.Errorf("book %s of %s: %w: %s", e.Kind, e.Amount, ErrEntry, refused.ConstraintName)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("book %s of %s: %w", e.Kind, e.Amount, err)
	}
	return id, nil
}

// checkViolation is what PostgreSQL says where a row breaks a CHECK.
const checkViolation = "23514"
