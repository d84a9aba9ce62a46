package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
	"market/internal/money"
	"market/internal/postgres"
)

// A Key says which wallet is meant.
type Key struct {
	Network  string
	Asset    common.Address
	Treasury common.Address
}

func (k Key) String() string { return k.Network + "/" + k.Asset.Hex() + "/" + k.Treasury.Hex() }

// A Mark is a block by which a wallet's logs are known.
type Mark struct {
	Block uint64
	Hash  common.Hash
}

// A State is how far a wallet is known.
type State struct {
	Key
	OpeningBlock   uint64
	OpeningBalance money.Amount
	Scanned        Mark
	HeldBlock      uint64 // the last block that was scanned to its end
	Held           money.Amount
	Unmatched      int // logs that no row of ours explains, up to now
	OpenedAt       time.Time
	ComparedAt     time.Time // zero: never
}

// LookedAt is when the wallet was opened, or compared last.
func (s State) LookedAt() time.Time {
	if s.ComparedAt.IsZero() {
		return s.OpenedAt
	}
	return s.ComparedAt
}

var (
	// errNew is that a wallet was never looked at.
	errNew = errors.New("no such wallet")
	// ErrMoved is that another process scans the same wallet, and has come further.
	ErrMoved = errors.New("the mark was moved by somebody else")
)

// Store keeps what is known of wallets. Every method takes the caller's db.
type Store struct{}

const (
	walletsMax = 1_000
	columnsSQL = `network, asset, treasury, opening_block, opening_balance::text, scanned_block, scanned_hash, held_block, held::text, opened_at, compared_at,
       (SELECT count(*) FROM wallet_transfers t WHERE t.network = w.network AND t.asset = w.asset AND t.treasury = w.treasury AND t.partner_kind IS NULL)`
	findSQL = `SELECT ` + columnsSQL + ` FROM wallets w WHERE network = $1 AND asset = $2 AND treasury = $3`
	listSQL = `SELECT ` + columnsSQL + ` FROM wallets w ORDER BY network, asset, treasury LIMIT $1`
)

func scanState(row pgx.CollectableRow) (s State, err error) {
	var (
		asset, treasury, hash  []byte
		opening, scanned, held int64
		compared               *time.Time
	)
	err = row.Scan(&s.Network, &asset, &treasury, &opening, &s.OpeningBalance, &scanned, &hash, &held, &s.Held, &s.OpenedAt, &compared, &s.Unmatched)
	s.OpenedAt = s.OpenedAt.UTC()
	s.Asset, s.Treasury = common.BytesToAddress(asset), common.BytesToAddress(treasury)
	s.OpeningBlock, s.HeldBlock = uint64(opening), uint64(held)              //nolint:gosec // written from values that fit
	s.Scanned = Mark{Block: uint64(scanned), Hash: common.BytesToHash(hash)} //nolint:gosec // written from values that fit
	if compared != nil {
		s.ComparedAt = compared.UTC()
	}
	return s, err
}

// Wallets returns every wallet that was ever looked at.
func (Store) Wallets(ctx context.Context, db postgres.DB) ([]State, error) {
	rows, err := db.Query(ctx, listSQL, walletsMax)
	if err != nil {
		return nil, fmt.Errorf("list wallets: %w", err)
	}
	all, err := pgx.CollectRows(rows, scanState)
	if err != nil {
		return nil, fmt.Errorf("list wallets: %w", err)
	}
	return all, nil
}

func (Store) find(ctx context.Context, db postgres.DB, k Key) (State, error) {
	rows, err := db.Query(ctx, findSQL, k.Network, k.Asset[:], k.Treasury[:])
	if err != nil {
		return State{}, fmt.Errorf("find wallet %s: %w", k, err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, scanState)
	if errors.Is(err, pgx.ErrNoRows) {
		return State{}, errNew
	}
	if err != nil {
		return State{}, fmt.Errorf("find wallet %s: %w", k, err)
	}
	return s, nil
}

// Replicas that see a wallet for the first time at once open it once.
const openSQL = `
INSERT INTO wallets (network, asset, treasury, opening_block, opening_balance, scanned_block, scanned_hash, held_block, held, agreed_block, agreed_books)
SELECT $1, $2, $3, $4, $5, $4, $6, $4, $5, $4, upto FROM ledger_folded
ON CONFLICT (network, asset, treasury) DO NOTHING`

func (Store) open(ctx context.Context, db postgres.DB, k Key, h chain.Holding) error {
	_, err := db.Exec(ctx, openSQL, k.Network, k.Asset[:], k.Treasury[:], int64(h.Block.Number), h.Amount, h.Block.Hash[:]) //nolint:gosec // range-checked by chain
	if err != nil {
		return fmt.Errorf("open wallet %s: %w", k, err)
	}
	return nil
}

const (
	// Of replicas that find it opened too early at once one opens it anew.
	reopenSQL = `
UPDATE wallets SET opening_block = $4, opening_balance = $5, opened_at = market_now(), scanned_block = $4, scanned_hash = $6, held_block = $4, held = $5, compared_at = NULL,
       agreed_block = $4, agreed_sum = 0, agreed_books = (SELECT upto FROM ledger_folded)
 WHERE network = $1 AND asset = $2 AND treasury = $3 AND opened_at < $7`
	forgetSQL = `DELETE FROM wallet_transfers WHERE network = $1 AND asset = $2 AND treasury = $3`
)

// reopen begins a wallet anew, where it was opened before a moment.
func (Store) reopen(ctx context.Context, db *pgxpool.Pool, k Key, h chain.Holding, before time.Time) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, reopenSQL, k.Network, k.Asset[:], k.Treasury[:], int64(h.Block.Number), h.Amount, h.Block.Hash[:], before) //nolint:gosec // range-checked by chain
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = tx.Exec(ctx, forgetSQL, k.Network, k.Asset[:], k.Treasury[:])
		return err
	})
	if err != nil {
		return fmt.Errorf("open wallet %s anew: %w", k, err)
	}
	return nil
}

const (
	// The mark that is expected is named: of two processes that scan the same range one writes it. Where it goes back, what is read anew is compared anew, and
	// leaves the sum: below where it agrees the transfers are what was added up.
	moveSQL = `
UPDATE wallets w SET scanned_block = $6, scanned_hash = $7, agreed_block = least(w.agreed_block, $6),
       agreed_sum = w.agreed_sum - CASE WHEN w.agreed_block <= $6 THEN 0 ELSE
	(SELECT coalesce(sum(CASE direction WHEN 'in' THEN amount ELSE - amount END), 0) FROM wallet_transfers t
	  WHERE t.network = w.network AND t.asset = w.asset AND t.treasury = w.treasury AND t.block_number > $6 AND t.block_number <= w.agreed_block) END
 WHERE network = $1 AND asset = $2 AND treasury = $3 AND scanned_block = $4 AND scanned_hash = $5`

	// What a range does not have any more is dropped, and what it still has keeps its partner.
	dropSQL = `
DELETE FROM wallet_transfers t
 WHERE network = $1 AND asset = $2 AND treasury = $3 AND block_number BETWEEN $4 AND $5
   AND NOT EXISTS (SELECT 1 FROM unnest($6::bytea[], $7::int[], $8::bytea[]) AS f(transaction, log_index, block_hash)
                    WHERE f.transaction = t.transaction AND f.log_index = t.log_index AND f.block_hash = t.block_hash)`

	keepSQL = `
INSERT INTO wallet_transfers AS t (network, asset, treasury, transaction, log_index, block_number, block_hash, direction, counterparty, amount)
SELECT $1, $2, $3, f.transaction, f.log_index, f.block_number, f.block_hash, f.direction, f.counterparty, f.amount::numeric
  FROM unnest($4::bytea[], $5::int[], $6::bigint[], $7::bytea[], $8::text[], $9::bytea[], $10::text[])
       AS f(transaction, log_index, block_number, block_hash, direction, counterparty, amount)
ON CONFLICT (network, transaction, log_index, treasury) DO UPDATE
   SET asset = excluded.asset, block_number = excluded.block_number, block_hash = excluded.block_hash, direction = excluded.direction,
       counterparty = excluded.counterparty, amount = excluded.amount, partner_kind = NULL, partner_id = NULL
 WHERE t.block_hash <> excluded.block_hash`
)

// extend writes what a range of blocks holds, and moves the mark to its end, in one transaction: a scan that is cut goes on where it was.
func (s Store) extend(ctx context.Context, db *pgxpool.Pool, k Key, from, to Mark, found []chain.Transfer) error {
	var (
		transactions, hashes, others [][]byte
		indexes                      []int32
		blocks                       []int64
		directions, amounts          []string
	)
	for i := range found {
		t := &found[i]
		transactions, hashes, others = append(transactions, t.Transaction[:]), append(hashes, t.BlockHash[:]), append(others, t.Other[:])
		indexes, blocks = append(indexes, int32(t.LogIndex)), append(blocks, int64(t.BlockNumber)) //nolint:gosec // range-checked by chain
		directions, amounts = append(directions, direction(t.In)), append(amounts, t.Amount.String())
	}
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := s.move(ctx, tx, k, from, to); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, dropSQL, k.Network, k.Asset[:], k.Treasury[:], int64(from.Block)+1, int64(to.Block), transactions, indexes, hashes) //nolint:gosec // range-checked by chain
		if err != nil || len(found) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, keepSQL, k.Network, k.Asset[:], k.Treasury[:], transactions, indexes, blocks, hashes, directions, others, amounts)
		return err
	})
	if err != nil {
		return fmt.Errorf("write transfers of wallet %s to block %d: %w", k, to.Block, err)
	}
	return nil
}

// move sets the mark, further or back.
func (Store) move(ctx context.Context, db postgres.DB, k Key, from, to Mark) error {
	tag, err := db.Exec(ctx, moveSQL, k.Network, k.Asset[:], k.Treasury[:], int64(from.Block), from.Hash[:], int64(to.Block), to.Hash[:]) //nolint:gosec // range-checked by chain
	if err != nil {
		return fmt.Errorf("move mark of wallet %s to block %d: %w", k, to.Block, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrMoved
	}
	return nil
}

const holdSQL = `
UPDATE wallets SET held_block = $4, held = $6
 WHERE network = $1 AND asset = $2 AND treasury = $3 AND scanned_block = $4 AND scanned_hash = $5`

// hold writes what a wallet holds at its mark.
func (Store) hold(ctx context.Context, db postgres.DB, k Key, h chain.Holding) error {
	tag, err := db.Exec(ctx, holdSQL, k.Network, k.Asset[:], k.Treasury[:], int64(h.Block.Number), h.Block.Hash[:], h.Amount) //nolint:gosec // range-checked by chain
	if err != nil {
		return fmt.Errorf("write what wallet %s holds: %w", k, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrMoved
	}
	return nil
}

func direction(in bool) string {
	if in {
		return "in"
	}
	return "out"
}

// A Known transfer is one that the chain has for good.
type Known struct {
	Key
	Amount      money.Amount
	Transaction common.Hash
	LogIndex    uint
	Block       uint64
	Partner     string // the row of ours that says why, as kind and id; empty: none does
}

// ErrUnknown is that no such transfer is known: it is not final yet, or none of a wallet of ours.
var ErrUnknown = errors.New("no such transfer is known")

// Between two wallets of ours one log is two transfers, one each way.
const transferSQL = `
SELECT asset, treasury, amount::text, block_number, coalesce(partner_kind || ' ' || partner_id, '')
  FROM wallet_transfers WHERE network = $1 AND transaction = $2 AND log_index = $3 AND direction = $4`

// Transfer returns a transfer into a wallet of ours, or out of one.
func (Store) Transfer(ctx context.Context, db postgres.DB, network string, transaction common.Hash, index uint, in bool) (Known, error) {
	k := Known{Key: Key{Network: network}, Transaction: transaction, LogIndex: index}
	var (
		asset, treasury []byte
		block           int64
	)
	err := db.QueryRow(ctx, transferSQL, network, transaction[:], int64(index), direction(in)).Scan(&asset, &treasury, &k.Amount, &block, &k.Partner) //nolint:gosec // the caller bounds it
	if errors.Is(err, pgx.ErrNoRows) {
		return Known{}, ErrUnknown
	}
	if err != nil {
		return Known{}, fmt.Errorf("find transfer %s/%d on %s: %w", transaction, index, network, err)
	}
	k.Asset, k.Treasury, k.Block = common.BytesToAddress(asset), common.BytesToAddress(treasury), uint64(block) //nolint:gosec // written from values that fit
	return k, nil
}
