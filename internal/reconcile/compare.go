package reconcile

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/money"
	"market/internal/postgres"
)

// suspicionsMax bounds what is named of one wallet in one look: where that much is wrong, more of it says nothing new.
const suspicionsMax = 200

// A Suspicion is what one look finds different.
type Suspicion struct {
	Kind    Kind
	Subject string // within the wallet and the kind
	Text    string
}

// Each of these reads what is new by its index, however much there is, and whatever the planner believes of that: OFFSET 0 keeps what belongs to one row from being
// joined as a whole table.
const (
	// What was posted since all agreed may be of a block below: a row that came late, or that says something else than it did. Then all from there on is
	// compared again. The block is no condition of the index by block, which would read history. How much of the books a look is sure to see is what was folded,
	// because nothing comes later below that; so without folds a look is slow, and right.
	sinceSQL = `
SELECT greatest(w.opening_block, least(w.agreed_block, (
	SELECT min(p.block_number) - 1
	  FROM ledger_postings p, LATERAL (SELECT network, asset, treasury FROM ledger_transactions WHERE id = p.transaction_id OFFSET 0) b
	 WHERE p.transaction_id > w.agreed_books AND p.account = 'treasury' AND p.block_number + 0 <= w.agreed_block
	   AND b.network = w.network AND b.asset = w.asset AND b.treasury = w.treasury))),
       w.agreed_block, w.agreed_sum::text, (SELECT upto FROM ledger_folded)
  FROM wallets w WHERE network = $1 AND asset = $2 AND treasury = $3 AND scanned_block = $4 AND held_block = $4`

	// A log whose row says no longer that it moved has none.
	partSQL = `
UPDATE wallet_transfers t SET partner_kind = NULL, partner_id = NULL
 WHERE t.network = $1 AND t.asset = $2 AND t.treasury = $3 AND t.block_number > $4 AND t.block_number <= $5 AND t.partner_kind IS NOT NULL
   AND NOT EXISTS (
	SELECT 1 FROM transfer_claims c
	 WHERE c.network = t.network AND c.transaction = t.transaction AND c.log_index = t.log_index AND c.treasury = t.treasury
	   AND c.kind = t.partner_kind AND c.id = t.partner_id OFFSET 0)`

	// An entry is looked at again, because a call may have claimed what was booked to suspense.
	matchSQL = `
UPDATE wallet_transfers t SET partner_kind = m.kind, partner_id = m.id
  FROM (
	SELECT o.transaction, o.log_index, c.kind, c.id
	  FROM wallet_transfers o, LATERAL (
		SELECT c.kind, c.id, c.asset, c.treasury, c.direction, c.amount, c.counterparty FROM transfer_claims c
		 WHERE c.network = o.network AND c.transaction = o.transaction AND c.log_index = o.log_index OFFSET 0
	       ) c
	 WHERE o.network = $1 AND o.asset = $2 AND o.treasury = $3 AND (o.partner_kind IS NULL OR o.partner_kind = 'entry')
	   AND c.asset = o.asset AND c.treasury = o.treasury AND c.direction = o.direction AND c.amount = o.amount
	   AND (c.counterparty IS NULL OR c.counterparty = o.counterparty)
	   AND (o.partner_kind, o.partner_id) IS DISTINCT FROM (c.kind, c.id)
  ) m
 WHERE t.network = $1 AND t.transaction = m.transaction AND t.log_index = m.log_index AND t.treasury = $3`

	giveBackSQL = `SELECT ledger_give_back_claimed($1)`

	// What is on its way to its row is no difference. A payment is in the chain before it is proved, by a facilitator's word or by the payer's own hand,
	// and until it lapses or is final its call is followed by the sweeper. A refund, or a payout, is in the chain before it is deep enough to be confirmed, and
	// where its source is out it is not looked at for hours. What came from another treasury of ours is different there, where it went.
	unmatchedSQL = `
SELECT t.direction, t.counterparty, t.amount::text, t.transaction, t.log_index, t.block_number
  FROM wallet_transfers t
 WHERE t.network = $1 AND t.asset = $2 AND t.treasury = $3 AND t.partner_kind IS NULL
   AND CASE t.direction
	WHEN 'in' THEN NOT EXISTS (
		SELECT 1 FROM calls c
		 WHERE c.payer = t.counterparty AND c.network = t.network AND c.asset = t.asset AND c.treasury = t.treasury AND c.amount = t.amount
		   AND c.payment_state IN ('sent', 'mined') OFFSET 0)
	  AND NOT EXISTS (
		SELECT 1 FROM calls c
		 WHERE c.payer = t.counterparty AND c.network = t.network AND c.asset = t.asset AND c.treasury = t.treasury AND c.amount = t.amount
		   AND c.payment_state IS NULL AND c.state IN ('settling', 'unknown', 'rejected', 'expired') OFFSET 0)
	  AND NOT EXISTS (SELECT 1 FROM wallet_transfers o WHERE o.network = t.network AND o.transaction = t.transaction AND o.log_index = t.log_index AND o.direction = 'out' OFFSET 0)
	ELSE NOT EXISTS (
		SELECT 1 FROM refunds r
		 WHERE r.network = t.network AND r.asset = t.asset AND r.authorizer = t.treasury AND r.payer = t.counterparty AND r.amount = t.amount
		   AND r.state NOT IN ('confirmed', 'void') AND EXISTS (SELECT 1 FROM refund_signatures s WHERE s.call_id = r.call_id) OFFSET 0)
	  AND NOT EXISTS (
		SELECT 1 FROM payouts p JOIN payout_signatures s ON s.payout_id = p.id
		 WHERE p.network = t.network AND p.asset = t.asset AND p.treasury = t.treasury AND p.amount = t.amount
		   AND p.state NOT IN ('confirmed', 'cancelled') AND s.address = t.counterparty OFFSET 0) END
 ORDER BY t.direction DESC, t.block_number, t.log_index LIMIT $4` // what went first: strangers can send as much as they like

	// $4 is the block from which on it is compared, and $5 that up to which the chain is known. A row that is not final may lack its log, and is nowhere
	// agreed on while it does.
	missingSQL = `
SELECT c.kind, c.id, c.direction, c.amount::text, c.transaction, c.log_index, c.block_number, t.amount::text, c.final
  FROM transfer_claims c
  LEFT JOIN LATERAL (
	SELECT t.transaction, t.asset, t.direction, t.amount, t.counterparty FROM wallet_transfers t
	 WHERE t.network = c.network AND t.transaction = c.transaction AND t.log_index = c.log_index AND t.treasury = c.treasury OFFSET 0
       ) t ON true
 WHERE c.network = $1 AND c.asset = $2 AND c.treasury = $3 AND c.block_number > $4 AND c.block_number <= $5
   AND (t.transaction IS NULL OR t.asset <> c.asset OR t.direction <> c.direction OR t.amount <> c.amount OR c.counterparty <> t.counterparty)
 ORDER BY c.final DESC, c.block_number, c.log_index LIMIT $6`

	// What is posted has the block of its transfer, so books and rows are compared as of a block as well.
	sumsSQL = `
SELECT (SELECT coalesce(sum(p.amount), 0)::text
          FROM ledger_postings p, LATERAL (SELECT network, asset, treasury FROM ledger_transactions WHERE id = p.transaction_id OFFSET 0) b
         WHERE p.account = 'treasury' AND p.block_number > $4 AND p.block_number <= $5 AND b.network = $1 AND b.asset = $2 AND b.treasury = $3),
       (SELECT coalesce(sum(CASE direction WHEN 'in' THEN amount ELSE - amount END), 0)::text FROM transfer_claims
         WHERE network = $1 AND asset = $2 AND treasury = $3 AND block_number > $4 AND block_number <= $5)`

	movedSQL = `
SELECT coalesce(sum(CASE direction WHEN 'in' THEN amount ELSE - amount END), 0)::text FROM wallet_transfers
 WHERE network = $1 AND asset = $2 AND treasury = $3 AND block_number > $4 AND block_number <= $5`

	agreeSQL = `UPDATE wallets SET agreed_block = $4, agreed_sum = $5, agreed_books = $6 WHERE network = $1 AND asset = $2 AND treasury = $3`
)

// A reach is what of a wallet one look compares: from a block to the last one that was scanned to its end.
type reach struct {
	State
	from   uint64       // all blocks above it
	agreed uint64       // up to which all agreed before
	sum    money.Signed // what the logs come to up to there
	books  int64        // the last transaction of the books that this look is sure to see
}

// An inflow is one that no row explains.
type inflow struct {
	Key
	counterparty common.Address
	amount       money.Amount
	transaction  common.Hash
	logIndex     uint
	block        uint64
}

func subjectOf(transaction []byte, index int32) string {
	return fmt.Sprintf("0x%s/%d", hex.EncodeToString(transaction), index)
}

// A finding is what a look at one wallet finds.
type finding struct {
	suspicions []Suspicion
	inflows    map[string]inflow // by the subject of their suspicion
	moved      money.Signed      // what the logs come to since the opening
	apart      bool              // rows, books or wallet are not all the same; a log that nobody explains does not count
}

func (f *finding) add(k Kind, subject, text string, args ...any) {
	f.suspicions = append(f.suspicions, Suspicion{k, subject, fmt.Sprintf(text, args...)})
}

// compare gives every log its row, and finds what is different. All of it sees one instant: the transaction is repeatable read.
func compare(ctx context.Context, tx pgx.Tx, s State) (f finding, err error) {
	r := reach{State: s}
	var from, agreed int64
	err = tx.QueryRow(ctx, sinceSQL, s.Network, s.Asset[:], s.Treasury[:], int64(s.HeldBlock)).Scan(&from, &agreed, &r.sum, &r.books) //nolint:gosec // read from bigint
	if errors.Is(err, pgx.ErrNoRows) {
		return finding{}, ErrMoved
	}
	if err != nil {
		return finding{}, fmt.Errorf("read how far wallet %s agrees: %w", s.Key, err)
	}
	r.from, r.agreed = uint64(from), uint64(agreed) //nolint:gosec // written from values that fit
	if _, err := tx.Exec(ctx, partSQL, r.args(r.from)...); err != nil {
		return finding{}, fmt.Errorf("part transfers of wallet %s: %w", s.Key, err)
	}
	if _, err := tx.Exec(ctx, matchSQL, s.Network, s.Asset[:], s.Treasury[:]); err != nil {
		return finding{}, fmt.Errorf("match transfers of wallet %s: %w", s.Key, err)
	}
	for _, look := range []func(context.Context, postgres.DB, reach, *finding) error{unmatched, missing, sums} {
		if err := look(ctx, tx, r, &f); err != nil {
			return finding{}, fmt.Errorf("compare wallet %s: %w", s.Key, err)
		}
	}
	if f.apart {
		return f, nil // the next look reads it again
	}
	if _, err := tx.Exec(ctx, agreeSQL, s.Network, s.Asset[:], s.Treasury[:], int64(s.HeldBlock), f.moved, r.books); err != nil { //nolint:gosec // read from bigint
		return finding{}, fmt.Errorf("write how far wallet %s agrees: %w", s.Key, err)
	}
	return f, nil
}

// args are those of a statement about the blocks of a wallet above one, up to the end of the reach.
func (r reach) args(above uint64) []any {
	return []any{r.Network, r.Asset[:], r.Treasury[:], int64(above), int64(r.HeldBlock)} //nolint:gosec // read from bigint
}

func unmatched(ctx context.Context, db postgres.DB, s reach, f *finding) error {
	rows, err := db.Query(ctx, unmatchedSQL, s.Network, s.Asset[:], s.Treasury[:], suspicionsMax)
	if err != nil {
		return err
	}
	var (
		way, amount        string
		other, transaction []byte
		index              int32
		block              int64
	)
	f.inflows = map[string]inflow{}
	_, err = pgx.ForEachRow(rows, []any{&way, &other, &amount, &transaction, &index, &block}, func() error {
		subject, who := subjectOf(transaction, index), common.BytesToAddress(other)
		if way == direction(false) {
			f.add(Outflow, subject, "%s went to %s in block %d, and no refund, payout or entry of ours says why", amount, who, block)
			return nil
		}
		parsed, err := money.ParseAmount(amount)
		if err != nil {
			return err
		}
		f.inflows[subject] = inflow{Key: s.Key, counterparty: who, amount: parsed,
			transaction: common.BytesToHash(transaction), logIndex: uint(index), block: uint64(block)} //nolint:gosec // written from values that fit
		f.add(Inflow, subject, "%s came from %s in block %d, and no call of ours says what for", amount, who, block)
		return nil
	})
	return err
}

func missing(ctx context.Context, db postgres.DB, r reach, f *finding) error {
	rows, err := db.Query(ctx, missingSQL, append(r.args(r.from), suspicionsMax)...)
	if err != nil {
		return err
	}
	var (
		kind, id, way, amount string
		transaction           []byte
		index                 int32
		block                 int64
		logged                *string
		final                 bool
	)
	_, err = pgx.ForEachRow(rows, []any{&kind, &id, &way, &amount, &transaction, &index, &block, &logged, &final}, func() error {
		f.apart = true
		if !final {
			return nil
		}
		has := "the chain has no such log"
		if logged != nil {
			has = "the log there is another one, of " + *logged
		}
		f.add(Row, kind+" "+id, "%s %s says that %s went %s for good by %s in block %d, and %s", kind, id, amount, way, subjectOf(transaction, index), block, has)
		return nil
	})
	return err
}

func sums(ctx context.Context, db postgres.DB, r reach, f *finding) error {
	var books, rows, since money.Signed
	if err := db.QueryRow(ctx, sumsSQL, r.args(r.from)...).Scan(&books, &rows); err != nil {
		return err
	}
	if err := db.QueryRow(ctx, movedSQL, r.args(r.agreed)...).Scan(&since); err != nil {
		return err
	}
	f.moved = r.sum.Add(since)
	should := func() money.Signed { return r.OpeningBalance.Debit().Add(f.moved) }
	if should().Cmp(r.Held.Debit()) != 0 {
		// Before that is said of a wallet, what was added up before is not relied on.
		if err := db.QueryRow(ctx, movedSQL, r.args(r.OpeningBlock)...).Scan(&f.moved); err != nil {
			return err
		}
	}
	if should().Cmp(r.Held.Debit()) != 0 {
		f.apart = true
		f.add(Wallet, "", "the wallet holds %s at block %d, and its opening of %s with its logs comes to %s", r.Held, r.HeldBlock, r.OpeningBalance, should())
	}
	if books.Cmp(rows) != 0 {
		f.apart = true
		f.add(Ledger, "", "from block %d to %d the books moved %s, and the rows that they are posted from %s", r.from, r.HeldBlock, books, rows)
	}
	return nil
}
