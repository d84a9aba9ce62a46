package payout

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/money"
	"market/internal/postgres"
)

var (
	// ErrTooLittle is that less is there than is paid out at a time: nothing was made.
	ErrTooLittle = errors.New("less than what is paid out at a time")
	// ErrOpen is that an earlier payout of the same money has not ended: what comes meanwhile waits for the next.
	ErrOpen = errors.New("an earlier payout has not ended")
	// ErrNoAddress is that the account has no address that it may be paid to.
	ErrNoAddress = errors.New("no address to pay to")
)

// itemsMax bounds one payout: its check and its statement read every item. What is beyond waits for the next, which is made when this one has ended.
const itemsMax = 50_000

// nextSQL is what is expected when one is made; the statement that makes it holds it to that.
const nextSQL = `
SELECT coalesce(max(p.number), 0) + 1, payout_address($1, $2),
       coalesce(bool_or(p.treasury = $4 AND p.state NOT IN ('confirmed', 'cancelled')), false)
  FROM payouts p WHERE p.account_id = $1 AND p.network = $2 AND p.asset = $3`

// One statement takes all that is there, gives the number and writes payout and items, so that of two replicas and an admin who press at once one makes it: the
// others have the same number, and write nothing. One whose snapshot is older than a payout that was made and has ended since would have its number, or meet
// the guard of a posting that is taken; either way nothing is written. The deferred check of the database has the last word on the sum.
const makeSQL = `
WITH taken AS MATERIALIZED (
	SELECT transaction_id, line, amount, block_number FROM payout_postings
	 WHERE account_id = $2 AND network = $3 AND asset = $4 AND treasury = $5 AND final
	 ORDER BY transaction_id, line LIMIT $11
), made AS (
	INSERT INTO payouts (id, account_id, network, asset, treasury, number, amount, address, nonce, from_block, made_by)
	SELECT $1, $2, $3, $4, $5, $6, sum(amount), $7, $8, max(block_number), $9 FROM taken
	HAVING sum(amount) >= $10::numeric AND sum(amount) > 0
	   AND $6 = (SELECT coalesce(max(number), 0) + 1 FROM payouts WHERE account_id = $2 AND network = $3 AND asset = $4)
	ON CONFLICT DO NOTHING
	RETURNING id
)
INSERT INTO payout_items (payout_id, transaction_id, line) SELECT made.id, taken.transaction_id, taken.line FROM made, taken`

// Make makes the payout of all that is there for an account to be paid out, where that is at least least, and hands it out at once. ErrTooLittle, ErrOpen and
// ErrNoAddress: there is none. ours are the wallets that nobody is paid to; by is who asked for it.
func (s Store) Make(ctx context.Context, db postgres.DB, of Purse, chainID uint64, least money.Amount, ours []common.Address, by string) (Payout, error) {
	var (
		number int64
		to     []byte
		open   bool
	)
	if err := db.QueryRow(ctx, nextSQL, of.Account, of.Network, of.Asset[:], of.Treasury[:]).Scan(&number, &to, &open); err != nil {
		return Payout{}, fmt.Errorf("make payout of account %s: %w", of.Account, err)
	}
	address := common.BytesToAddress(to)
	switch {
	case open:
		return Payout{}, ErrOpen
	case to == nil || Ours(address, of.Asset, ours):
		return Payout{}, ErrNoAddress
	}
	id, nonce := uuid.Must(uuid.NewV7()), Nonce(chainID, of.Asset, of.Account, number)
	tag, err := db.Exec(ctx, makeSQL, id, of.Account, of.Network, of.Asset[:], of.Treasury[:], number, address[:], nonce[:], by, least, itemsMax)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.ConstraintName == "payout_items_once" {
		return Payout{}, ErrOpen
	}
	if err != nil {
		return Payout{}, fmt.Errorf("make payout %d of account %s: %w", number, of.Account, err)
	}
	if tag.RowsAffected() == 0 {
		return Payout{}, s.whyNot(ctx, db, of, number)
	}
	return s.Find(ctx, db, id)
}

const takenSQL = `SELECT EXISTS (SELECT 1 FROM payouts WHERE account_id = $1 AND network = $2 AND asset = $3 AND number = $4)`

// whyNot says why nothing was made: somebody else has the number, or there is too little.
func (Store) whyNot(ctx context.Context, db postgres.DB, of Purse, number int64) error {
	var taken bool
	if err := db.QueryRow(ctx, takenSQL, of.Account, of.Network, of.Asset[:], number).Scan(&taken); err != nil {
		return fmt.Errorf("make payout %d of account %s: %w", number, of.Account, err)
	}
	if taken {
		return ErrOpen
	}
	return ErrTooLittle
}

// Ours says whether an address is one that nobody is paid to: a wallet of ours, or the token itself.
func Ours(address, asset common.Address, ours []common.Address) bool {
	if address == asset || address == (common.Address{}) {
		return true
	}
	for _, o := range ours {
		if o == address {
			return true
		}
	}
	return false
}

// A Standing is what an account has to get in all, final or not, and which plan it is on.
type Standing struct {
	Purse
	Plan   string
	Amount money.Amount
}

// The balances are folded, so this is cheap; what of it is final is looked at where it is enough alone.
const standingSQL = `
SELECT account_id, network, asset, treasury, plan, amount::text FROM payout_standing
 WHERE network = ANY($1) AND (account_id, network, asset, treasury) > ($2, $3, $4, $5)
 ORDER BY account_id, network, asset, treasury LIMIT $6`

// Standings returns the accounts after a purse that have something to get, an address, and no open payout, at most limit of them.
func (Store) Standings(ctx context.Context, db postgres.DB, networks []string, after Purse, limit int) ([]Standing, error) {
	rows, err := db.Query(ctx, standingSQL, networks, after.Account, after.Network, after.Asset[:], after.Treasury[:], limit)
	if err != nil {
		return nil, fmt.Errorf("list what accounts have to get: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Standing, err error) {
		var asset, treasury []byte
		err = row.Scan(&s.Account, &s.Network, &asset, &treasury, &s.Plan, &s.Amount)
		s.Asset, s.Treasury = common.BytesToAddress(asset), common.BytesToAddress(treasury)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("list what accounts have to get: %w", err)
	}
	return all, nil
}
