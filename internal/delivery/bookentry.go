package delivery

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/ledger"
	"market/internal/reconcile"
	"market/internal/refusal"
)

// An EntryOrder says of a transfer that no call moved what it was. What it moved, and where, is what the chain says.
type EntryOrder struct {
	Kind        ledger.EntryKind
	Network     string
	Transaction common.Hash
	LogIndex    uint // in its block
}

// BookEntry books a transfer that the reconciliation has found, and keeps in the same transaction who did and why. Of two at once one books it; the other
// one is refused.
func BookEntry(ctx context.Context, db *pgxpool.Pool, o EntryOrder, by catalog.Author, reason string) (booked ledger.Entry, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		known, err := reconcile.Store{}.Transfer(ctx, tx, o.Network, o.Transaction, o.LogIndex, into(o.Kind))
		switch {
		case errors.Is(err, reconcile.ErrUnknown):
			return refusal.New(call.NotFound, "no such transfer %s a treasury on %s is known: it is known a minute after it is final", way(o.Kind), o.Network)
		case err != nil:
			return err
		case known.Partner != "":
			return refusal.New(call.Conflict, "the transfer is booked already: it belongs to %s", known.Partner)
		}
		var to common.Address
		if o.Kind == ledger.Moved {
			if to, err = arrived(ctx, tx, o); err != nil {
				return err
			}
		}
		booked = ledger.Entry{Network: o.Network, Asset: known.Asset, Treasury: known.Treasury, To: to, Kind: o.Kind, Amount: known.Amount, Reason: reason, By: by.Name,
			Transfer: ledger.Transfer{Transaction: o.Transaction, LogIndex: o.LogIndex, Block: known.Block}}
		if _, err := (ledger.Store{}).Post(ctx, tx, booked); err != nil {
			return err
		}
		entry := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: audit.TransferBooked, Reason: reason,
			Subject: audit.Transfer(fmt.Sprintf("%s %s/%d", o.Network, o.Transaction, o.LogIndex))}
		after := map[string]string{"kind": string(o.Kind), "amount": known.Amount.String(), "asset": known.Asset.Hex(), "treasury": known.Treasury.Hex()}
		if o.Kind == ledger.Moved {
			after["to_treasury"] = to.Hex()
		}
		if err := entry.Changed(struct{}{}, after); err != nil {
			return err
		}
		_, err = audit.Store{}.Add(ctx, tx, entry)
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrBooked):
		return ledger.Entry{}, refusal.New(call.Conflict, "the transfer is booked already")
	case errors.Is(err, ledger.ErrAboveFees):
		return ledger.Entry{}, refusal.New(call.Conflict, "that is more than the fees which this treasury has earned")
	}
	if _, no := errors.AsType[*refusal.Error](err); err != nil && !no {
		err = fmt.Errorf("book transfer %s: %w", o.Transaction, err)
	}
	if err != nil {
		return ledger.Entry{}, err
	}
	return booked, nil
}

// arrived returns the treasury into which money was moved out of another one.
func arrived(ctx context.Context, tx pgx.Tx, o EntryOrder) (common.Address, error) {
	known, err := reconcile.Store{}.Transfer(ctx, tx, o.Network, o.Transaction, o.LogIndex, true)
	switch {
	case errors.Is(err, reconcile.ErrUnknown):
		return common.Address{}, refusal.New(call.Conflict, "the transfer did not go into another treasury of ours on %s, as far as is known", o.Network)
	case err != nil:
		return common.Address{}, err
	case known.Partner != "":
		return common.Address{}, refusal.New(call.Conflict, "what came into the other treasury is booked already: it belongs to %s", known.Partner)
	}
	return known.Treasury, nil
}

// into says whether an entry is about what came in.
func into(k ledger.EntryKind) bool { return k != ledger.FeeWithdrawal && k != ledger.Moved }

func way(k ledger.EntryKind) string {
	if into(k) {
		return "into"
	}
	return "out of"
}
