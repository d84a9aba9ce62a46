package facilitator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/chain"
)

// store keeps the transactions of one gas key on one network.
type store struct {
	db      *pgxpool.Pool
	network string
	sender  common.Address
}

// A sending is one signed transaction.
type sending struct {
	nonce uint64
	hash  common.Hash
	raw   []byte
	open  bool // not yet known to be mined for good
}

// carries says whether this very authorization is in the transaction. Another one of the same nonce has other calldata.
func (tx sending) carries(s chain.Signed) bool {
	var decoded types.Transaction
	return decoded.UnmarshalBinary(tx.raw) == nil && bytes.Equal(decoded.Data(), chain.Calldata(s))
}

// shownBy returns the newest transaction that carries an authorization; the zero hash means that none does.
func shownBy(s chain.Signed, all []sending) common.Hash {
	for _, tx := range all {
		if tx.carries(s) {
			return tx.hash
		}
	}
	return common.Hash{}
}

// An authorization can have more than one transaction only one after another, each undone by the chain before the next.
const earlierMax = 8

// Open ones come first. Those of other gas keys count as well: their bytes are as public as ours.
const earlierSQL = `
SELECT nonce, hash, raw, mined_block IS NULL
  FROM engine_transactions
 WHERE network = $1 AND asset = $2 AND authorizer = $3 AND authorization_nonce = $4
 ORDER BY mined_block IS NULL DESC, created_at DESC, nonce DESC
 LIMIT $5`

// earlier returns what was signed for an authorization before.
func (st store) earlier(ctx context.Context, s chain.Signed) ([]sending, error) {
	rows, err := st.db.Query(ctx, earlierSQL, st.network, s.Asset[:], s.From[:], s.Nonce[:], earlierMax)
	if err != nil {
		return nil, fmt.Errorf("read transactions of authorization %s: %w", s.Nonce, err)
	}
	all, err := pgx.CollectRows(rows, scanSending)
	if err != nil {
		return nil, fmt.Errorf("read transactions of authorization %s: %w", s.Nonce, err)
	}
	return all, nil
}

func scanSending(row pgx.CollectableRow) (sending, error) {
	var tx sending
	err := tx.scan(row, &tx.open)
	return tx, err
}

func (tx *sending) scan(row pgx.CollectableRow, flag *bool) error {
	var nonce int64
	var hash []byte
	err := row.Scan(&nonce, &hash, &tx.raw, flag)
	tx.nonce, tx.hash = uint64(nonce), common.BytesToHash(hash) //nolint:gosec // the schema keeps it at 0 or more
	return err
}

// The next nonce is the database's, or the chain's where a transaction of this key came from elsewhere. The row stays locked until the
// transaction that carries the nonce is stored with it, so an abandoned one leaves no gap.
const reserveSQL = `
INSERT INTO gas_accounts AS a (network, address, next_nonce)
VALUES ($1, $2, $3::bigint + 1)
    ON CONFLICT (network, address) DO UPDATE SET next_nonce = greatest(a.next_nonce, $3::bigint) + 1
RETURNING next_nonce - 1`

const storeSQL = `
INSERT INTO engine_transactions (network, sender, nonce, hash, raw, asset, authorizer, authorization_nonce)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

// errUnsure means that a transaction may or may not be stored: the commit was sent and its answer is lost.
var errUnsure = errors.New("the commit's answer is lost")

// reserve takes the next nonce, has the transaction signed with it and stores it, all or nothing. Where the authorization got an open
// transaction meanwhile, that one is returned and no nonce is taken.
func (st store) reserve(ctx context.Context, s chain.Signed, chainNonce uint64, sign func(nonce uint64) (sending, error)) (sending, error) {
	tx, err := st.db.Begin(ctx)
	if err != nil {
		return sending{}, fmt.Errorf("reserve a nonce of %s: %w", st.sender, err)
	}
	defer rollback(ctx, tx)
	signed, found, err := st.reserveIn(ctx, tx, s, chainNonce, sign)
	if err != nil {
		return sending{}, fmt.Errorf("reserve a nonce of %s: %w", st.sender, err)
	}
	if found {
		return signed, nil
	}
	if err := tx.Commit(ctx); err != nil {
		return signed, fmt.Errorf("store transaction %s: %w: %w", signed.hash, errUnsure, err)
	}
	return signed, nil
}

// rollback does nothing after a commit. It has a deadline of its own, because the caller's may be what ended the work.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = tx.Rollback(ctx) // a connection that cannot roll back is closed by the pool, which ends the transaction too
}

func (st store) reserveIn(ctx context.Context, tx pgx.Tx, s chain.Signed, chainNonce uint64,
	sign func(nonce uint64) (sending, error),
) (signed sending, found bool, err error) {
	var nonce int64
	// The lock comes first and the look-up after it, in a statement of its own: only so does it see what the last holder stored.
	var batch pgx.Batch
	batch.Queue(reserveSQL, st.network, st.sender[:], int64(chainNonce)).QueryRow(func(row pgx.Row) error { //nolint:gosec // chain.Tip caps it
		return row.Scan(&nonce)
	})
	batch.Queue(earlierSQL, st.network, s.Asset[:], s.From[:], s.Nonce[:], 1).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, scanSending)
		if err == nil && len(all) == 1 && all[0].open {
			signed, found = all[0], true
		}
		return err
	})
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil || found {
		return signed, found, err
	}
	signed, err = sign(uint64(nonce)) //nolint:gosec // the schema keeps it at 0 or more
	if err != nil {
		return sending{}, false, err
	}
	_, err = tx.Exec(ctx, storeSQL, st.network, st.sender[:], nonce, signed.hash[:], signed.raw, s.Asset[:], s.From[:], s.Nonce[:])
	return signed, false, err
}

const openSQL = `
SELECT nonce, hash, raw, market_now() - created_at >= $4::interval
  FROM engine_transactions
 WHERE network = $1 AND sender = $2 AND nonce > $3 AND mined_block IS NULL
 ORDER BY nonce
 LIMIT $5`

// An aged sending says whether it is old enough to be sent again.
type aged struct {
	sending
	due bool
}

// openAfter returns a page of open transactions with nonces above one; -1 starts at the first.
func (st store) openAfter(ctx context.Context, nonce int64, dueAfter time.Duration, limit int) ([]aged, error) {
	rows, err := st.db.Query(ctx, openSQL, st.network, st.sender[:], nonce, dueAfter, limit)
	if err != nil {
		return nil, fmt.Errorf("read open transactions of %s: %w", st.sender, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (aged, error) {
		tx := aged{sending: sending{open: true}}
		err := tx.scan(row, &tx.due)
		return tx, err
	})
	if err != nil {
		return nil, fmt.Errorf("read open transactions of %s: %w", st.sender, err)
	}
	return all, nil
}

const closeSQL = `
UPDATE engine_transactions AS t
   SET mined_block = m.block
  FROM unnest($3::bigint[], $4::bigint[]) AS m (nonce, block)
 WHERE t.network = $1 AND t.sender = $2 AND t.nonce = m.nonce AND t.mined_block IS NULL`

// close writes that nothing more is to be done for these nonces, and the blocks that prove it.
func (st store) close(ctx context.Context, nonces, blocks []int64) error {
	if _, err := st.db.Exec(ctx, closeSQL, st.network, st.sender[:], nonces, blocks); err != nil {
		return fmt.Errorf("close transactions of %s: %w", st.sender, err)
	}
	return nil
}

// A nonce that was handed out and is not mined has its row, mined before a reorganisation or not.
const backlogSQL = `
SELECT coalesce((SELECT next_nonce FROM gas_accounts WHERE network = $1 AND address = $2), 0),
       count(*), coalesce(bool_or(created_at < market_now() - $4::interval), false)
  FROM engine_transactions
 WHERE network = $1 AND sender = $2 AND nonce >= $3`

// backlog says, of the nonces that the chain has not mined: how many were handed out, how many have a stored transaction, and whether
// one of those is older than it should be.
func (st store) backlog(ctx context.Context, minedNonce uint64, stuckAfter time.Duration) (handedOut, stored int64, stuck bool, err error) {
	var next int64
	mined := int64(minedNonce) //nolint:gosec // chain.Tip caps it
	err = st.db.QueryRow(ctx, backlogSQL, st.network, st.sender[:], mined, stuckAfter).Scan(&next, &stored, &stuck)
	if err != nil {
		return 0, 0, false, fmt.Errorf("read backlog of %s: %w", st.sender, err)
	}
	return max(0, next-mined), stored, stuck, nil
}
