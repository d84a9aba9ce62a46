package reconcile

import (
	"context"
	"encoding/hex"
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

const (
	// An entry is looked at again, because a call may have claimed what was booked to suspense.
	matchSQL = `
UPDATE wallet_transfers t SET partner_kind = c.kind, partner_id = c.id
  FROM transfer_claims c
 WHERE t.network = $1 AND t.asset = $2 AND t.treasury = $3 AND (t.partner_kind IS NULL OR t.partner_kind = 'entry')
   AND c.network = t.network AND c.transaction = t.transaction AND c.log_index = t.log_index
   AND c.asset = t.asset AND c.treasury = t.treasury AND c.direction = t.direction AND c.amount = t.amount
   AND (c.counterparty IS NULL OR c.counterparty = t.counterparty)
   AND (t.partner_kind, t.partner_id) IS DISTINCT FROM (c.kind, c.id)`

	giveBackSQL = `SELECT ledger_give_back_claimed($1)`

	// What is on its way to its row is no difference. A payment is in the chain before it is proved, by a facilitator's word or by the payer's own hand,
	// and until it lapses or is final its call is followed by the sweeper. A refund is in the chain before it is deep enough to be confirmed, and where its
	// source is out it is not looked at for hours.
	unmatchedSQL = `
SELECT t.direction, t.counterparty, t.amount::text, t.transaction, t.log_index, t.block_number
  FROM wallet_transfers t
 WHERE t.network = $1 AND t.asset = $2 AND t.treasury = $3 AND t.partner_kind IS NULL
   AND CASE t.direction
	WHEN 'in' THEN NOT EXISTS (
		SELECT 1 FROM calls c
		 WHERE c.payer = t.counterparty AND c.network = t.network AND c.asset = t.asset AND c.treasury = t.treasury AND c.amount = t.amount
		   AND (c.payment_state IN ('sent', 'mined') OR c.payment_state IS NULL AND c.state IN ('settling', 'unknown', 'rejected', 'expired')))
	ELSE NOT EXISTS (
		SELECT 1 FROM refunds r
		 WHERE r.network = t.network AND r.asset = t.asset AND r.authorizer = t.treasury AND r.payer = t.counterparty AND r.amount = t.amount
		   AND r.state NOT IN ('confirmed', 'void') AND EXISTS (SELECT 1 FROM refund_signatures s WHERE s.call_id = r.call_id)) END
 ORDER BY t.block_number, t.log_index LIMIT $4`

	// $4 is the opening, and $5 the block up to which the chain is known.
	missingSQL = `
SELECT c.kind, c.id, c.direction, c.amount::text, c.transaction, c.log_index, c.block_number, t.amount::text
  FROM transfer_claims c
  LEFT JOIN wallet_transfers t ON t.network = c.network AND t.transaction = c.transaction AND t.log_index = c.log_index AND t.treasury = c.treasury
 WHERE c.network = $1 AND c.asset = $2 AND c.treasury = $3 AND c.final AND c.block_number > $4 AND c.block_number <= $5
   AND (t.transaction IS NULL OR t.asset <> c.asset OR t.direction <> c.direction OR t.amount <> c.amount OR c.counterparty <> t.counterparty)
 ORDER BY c.block_number, c.log_index LIMIT $6`

	// What is posted has the block of its transfer, so books and rows are compared as of a block as well.
	sumsSQL = `
SELECT (SELECT coalesce(sum(CASE direction WHEN 'in' THEN amount ELSE - amount END), 0)::text FROM wallet_transfers
         WHERE network = $1 AND asset = $2 AND treasury = $3 AND block_number > $4 AND block_number <= $5),
       (SELECT coalesce(sum(p.amount), 0)::text FROM ledger_transactions t JOIN ledger_postings p ON p.transaction_id = t.id
         WHERE t.network = $1 AND t.asset = $2 AND t.treasury = $3 AND p.account = 'treasury' AND p.block_number > $4 AND p.block_number <= $5),
       (SELECT coalesce(sum(CASE direction WHEN 'in' THEN amount ELSE - amount END), 0)::text FROM transfer_claims
         WHERE network = $1 AND asset = $2 AND treasury = $3 AND block_number > $4 AND block_number <= $5)`
)

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
}

func (f *finding) add(k Kind, subject, text string, args ...any) {
	f.suspicions = append(f.suspicions, Suspicion{k, subject, fmt.Sprintf(text, args...)})
}

// compare gives every log its row, and finds what is different. All of it sees one instant: the transaction is repeatable read.
func compare(ctx context.Context, tx pgx.Tx, s State) (f finding, err error) {
	if _, err := tx.Exec(ctx, matchSQL, s.Network, s.Asset[:], s.Treasury[:]); err != nil {
		return finding{}, fmt.Errorf("match transfers of wallet %s: %w", s.Key, err)
	}
	for _, look := range []func(context.Context, postgres.DB, State, *finding) error{unmatched, missing, sums} {
		if err := look(ctx, tx, s, &f); err != nil {
			return finding{}, fmt.Errorf("compare wallet %s: %w", s.Key, err)
		}
	}
	return f, nil
}

func unmatched(ctx context.Context, db postgres.DB, s State, f *finding) error {
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
			f.add(Outflow, subject, "%s went to %s in block %d, and no refund or entry of ours says why", amount, who, block)
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

func missing(ctx context.Context, db postgres.DB, s State, f *finding) error {
	rows, err := db.Query(ctx, missingSQL, s.Network, s.Asset[:], s.Treasury[:], int64(s.OpeningBlock), int64(s.HeldBlock), suspicionsMax) //nolint:gosec // read from bigint
	if err != nil {
		return err
	}
	var (
		kind, id, way, amount string
		transaction           []byte
		index                 int32
		block                 int64
		logged                *string
	)
	_, err = pgx.ForEachRow(rows, []any{&kind, &id, &way, &amount, &transaction, &index, &block, &logged}, func() error {
		has := "the chain has no such log"
		if logged != nil {
			has = "the log there is another one, of " + *logged
		}
		f.add(Row, kind+" "+id, "%s %s says that %s went %s for good by %s in block %d, and %s", kind, id, amount, way, subjectOf(transaction, index), block, has)
		return nil
	})
	return err
}

func sums(ctx context.Context, db postgres.DB, s State, f *finding) error {
	var logs, books, rows money.Signed
	err := db.QueryRow(ctx, sumsSQL, s.Network, s.Asset[:], s.Treasury[:], int64(s.OpeningBlock), int64(s.HeldBlock)).Scan(&logs, &books, &rows) //nolint:gosec // read from bigint
	if err != nil {
		return err
	}
	if should := s.OpeningBalance.Debit().Add(logs); should.Cmp(s.Held.Debit()) != 0 {
		f.add(Wallet, "", "the wallet holds %s at block %d, and its opening of %s with its logs comes to %s", s.Held, s.HeldBlock, s.OpeningBalance, should)
	}
	if books.Cmp(rows) != 0 {
		f.add(Ledger, "", "from block %d to %d the books moved %s, and the rows that they are posted from %s", s.OpeningBlock, s.HeldBlock, books, rows)
	}
	return nil
}
