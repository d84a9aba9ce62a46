package desk

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/payment"
	"market/internal/postgres"
)

// Undone keeps the payments whose transaction was mined and moved nothing.
type Undone struct{}

// A Past is what is known of a payment and of who makes it.
type Past struct {
	Code        payment.Code // why this very payment was undone; empty where it was not
	Transaction common.Hash  // that was mined for it
	Payer       int          // how many payments of the last day the code of the payer's account undid
}

const pastSQL = `
SELECT coalesce(own.code, ''), coalesce(own.transaction, ''), payer.times
  FROM (SELECT count(*) AS times FROM facilitator_undone WHERE payer = $3 AND by_payer AND undone_at > market_now() - $5::interval) AS payer
  LEFT JOIN facilitator_undone AS own ON own.network = $1 AND own.asset = $2 AND own.payer = $3 AND own.nonce = $4`

// Past looks a payment and its payer up.
func (Undone) Past(ctx context.Context, db postgres.DB, network string, s chain.Signed) (Past, error) {
	var p Past
	var transaction []byte
	if err := db.QueryRow(ctx, pastSQL, network, s.Asset[:], s.From[:], s.Nonce[:], payment.PayerWindow).Scan(&p.Code, &transaction, &p.Payer); err != nil {
		return Past{}, fmt.Errorf("look up what was undone of %s: %w", s.From, err)
	}
	p.Transaction = common.BytesToHash(transaction)
	return p, nil
}

// What was said first stays.
const undoneSQL = `
INSERT INTO facilitator_undone (network, asset, payer, nonce, transaction, code, by_payer)
VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (network, asset, payer, nonce) DO NOTHING`

// Add keeps a settlement that was rejected after its transaction was mined.
func (Undone) Add(ctx context.Context, db postgres.DB, network string, s chain.Signed, no chain.Settlement) error {
	byPayer := no.PayerFault && payment.OfOwnCode(payment.Code(no.Why))
	_, err := db.Exec(ctx, undoneSQL, network, s.Asset[:], s.From[:], s.Nonce[:], no.Transaction[:], no.Why, byPayer)
	if err != nil {
		return fmt.Errorf("keep that %s was undone: %w", s.Nonce, err)
	}
	return nil
}

// keepUndone keeps a no that cost us gas, before it is said.
func (d *Desk) keepUndone(ctx context.Context, r Rail, s chain.Signed, no chain.Settlement) error {
	if no.Status != chain.StatusRejected || no.Transaction == (common.Hash{}) {
		return nil
	}
	if err := d.undone.Add(ctx, d.db, r.Network.ID, s, no); err != nil {
		return decided(payment.CodePending, pendingText, err) // the same request again finds the same no
	}
	return nil
}

// refuseUndone refuses what would cost us gas for nothing: a payment that was undone before, by its transaction, and any new one of an account
// whose code says yes while it is simulated and no on the chain. What may have moved its money all the same is left to the engine, which sends
// nothing for it.
func (d *Desk) refuseUndone(ctx context.Context, r Rail, s chain.Signed) (common.Hash, error) {
	past, err := d.undone.Past(ctx, d.db, r.Network.ID, s)
	switch {
	case err != nil:
		return common.Hash{}, err
	case past.Code != "":
		account, err := r.Node.Account(ctx, s.Asset, s.From, s.Nonce)
		if err != nil {
			return common.Hash{}, fmt.Errorf("read account %s: %w", s.From, err)
		}
		if account.NonceUsed {
			return common.Hash{}, nil
		}
		return past.Transaction, decided(past.Code, undoneText, nil)
	case past.Payer >= payment.UndoneMax:
		shown, err := r.Engine.Shown(ctx, s)
		if err != nil || shown {
			return common.Hash{}, err
		}
		return common.Hash{}, decided(payment.CodeFailed,
			fmt.Sprintf("The code of the payer's account took %d payments of the last day when they were simulated, and not on the chain.", past.Payer), nil)
	}
	return common.Hash{}, nil
}
