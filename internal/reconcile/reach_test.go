package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"market/internal/ledger"
)

const agreesSQL = `
SELECT w.agreed_block, w.agreed_block = w.held_block, w.agreed_sum = (
	SELECT coalesce(sum(CASE direction WHEN 'in' THEN amount ELSE - amount END), 0) FROM wallet_transfers t WHERE t.block_number > w.opening_block AND t.block_number <= w.agreed_block)
  FROM wallets w`

// agrees returns up to which block all agrees, and whether that is all that is known. What was added up is what is there, whatever was read anew.
func (b *bench) agrees(t *testing.T) (block int64, all bool) {
	t.Helper()
	var sum bool
	if err := b.db.QueryRow(t.Context(), agreesSQL).Scan(&block, &all, &sum); err != nil {
		t.Fatal(err)
	}
	if !sum {
		t.Error("the sum up to where all agrees is not that of the transfers")
	}
	return block, all
}

func TestCompare_WhatAgreesIsNotReadAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id, _ := b.paid(t, 900)
	b.refunded(t, id, b.spend(t, b.key.Asset, 900))
	b.look(t)
	first, all := b.agrees(t)
	if !all {
		t.Fatal("what agrees is not said to")
	}
	// A change that leaves no trace in the books is what a look of all of it would find, and one of what is new does not.
	b.exec(t, `ALTER TABLE calls DISABLE TRIGGER USER`)
	b.exec(t, `UPDATE calls SET amount = 901 WHERE id = $1`, id)
	b.exec(t, `ALTER TABLE calls ENABLE TRIGGER USER`)
	b.paid(t, 300)
	b.look(t)
	if second, all := b.agrees(t); !all || second <= first || len(b.suspected(t)) > 0 {
		t.Errorf("agreed to %d and then to %d (all: %v), suspected %v; want it to go on, and none", first, second, all, b.suspected(t))
	}
}

func (b *bench) suspected(t *testing.T) []string {
	t.Helper()
	rows, err := b.db.Query(t.Context(), `SELECT kind FROM suspicions ORDER BY kind`)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// What agreed once and changed since is looked at again, though it is far below what is new.
func TestCompare_ARowThatGivesUpItsTransferLeavesTheLogUnexplained(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id, _ := b.paid(t, 900)
	b.paid(t, 300)
	b.look(t)
	b.mine(t, 5)
	b.look(t)
	b.exec(t, `UPDATE calls SET payment_state = 'lost' WHERE id = $1`, id)
	b.last(t, time.Hour)
	b.want(t, "lost, and in the chain", false, Inflow)
	if got := suspense(t, b); got != "-900" {
		t.Errorf("in suspense are %s, want -900", got)
	}
	b.agrees(t)
}

// A difference stays one, however much is paid and agrees after it.
func TestCompare_NothingAgreesBeyondADifference(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.look(t)
	before, _ := b.agrees(t)
	id := b.claim(t, b.key.Asset, 900)
	_, in := b.paid(t, 800)
	in.Transaction[0] ^= 1
	b.prove(t, id, in)
	for range 3 {
		b.paid(t, 300)
		b.last(t, time.Hour)
	}
	b.want(t, "three payments later", true, Row)
	if at, all := b.agrees(t); at > before || all {
		t.Errorf("agreed to %d, want no further than %d", at, before)
	}
	b.exec(t, `UPDATE calls SET payment_state = 'lost' WHERE id = $1`, id)
	b.look(t)
	if _, all := b.agrees(t); !all {
		t.Error("healed, and it does not agree")
	}
	b.want(t, "healed", false)
}

// Where the scan goes back, what is read anew is compared anew.
func TestCompare_AScanThatGoesBackTakesAlongWhatAgreed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.paid(t, 900)
	b.paid(t, 300)
	b.look(t)
	s := b.state(t)
	back := Mark{Block: s.OpeningBlock + 1}
	if err := b.r.store.move(t.Context(), b.db, s.Key, s.Scanned, back); err != nil {
		t.Fatal(err)
	}
	if at, _ := b.agrees(t); at != int64(back.Block) { //nolint:gosec // a few blocks
		t.Errorf("agreed to %d, want %d", at, back.Block)
	}
	b.look(t) // by the mark's hash the chain was reorganised
	if _, all := b.agrees(t); !all || len(b.suspected(t)) > 0 {
		t.Errorf("all agrees: %v, suspected %v; want all, and none", all, b.suspected(t))
	}
}

const (
	// Copies of one payment with its refund and of a payout, one in each block, that all agree.
	manyCallsSQL = `
INSERT INTO calls SELECT (jsonb_populate_record(c, jsonb_build_object('id', gen_random_uuid(), 'state', 'failed', 'nonce', sha256(n::text::bytea), 'transaction', sha256(n::text::bytea),
       'block_number', 1000 + n))).*
  FROM calls c, generate_series(1, $1::int) n`
	manyRefundsSQL = `
INSERT INTO refunds SELECT (jsonb_populate_record(r, jsonb_build_object('call_id', c.id, 'nonce', c.nonce, 'payment_nonce', c.nonce, 'transaction', sha256(c.transaction),
       'block_number', c.block_number))).*
  FROM refunds r, calls c WHERE c.block_number > 1000`
	manyPayoutsSQL = `
INSERT INTO payouts SELECT (jsonb_populate_record(p, jsonb_build_object('id', gen_random_uuid(), 'number', n + 1, 'nonce', sha256(n::text::bytea), 'transaction', sha256(('out' || n)::bytea),
       'block_number', 1000 + n))).*
  FROM payouts p, generate_series(1, $1::int) n`
	manyTransfersSQL = `
INSERT INTO wallet_transfers (network, asset, treasury, transaction, log_index, block_number, block_hash, direction, counterparty, amount, partner_kind, partner_id)
SELECT network, asset, treasury, transaction, log_index, block_number, block_hash, 'in', payer, amount, 'call', id::text FROM calls WHERE block_number > 1000`
	// The last ones are new.
	agreedSQL = `UPDATE wallets SET scanned_block = $1 + 1000, held_block = $1 + 1000, agreed_block = $1 + 995, agreed_books = (SELECT max(id) - 5 FROM ledger_transactions)`
)

// What a look reads is what is new, however much there is already.
func TestCompare_ReadsByIndexWhatIsNew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const many = 400
	id, _ := b.paid(t, 900)
	b.refunded(t, id, b.spend(t, b.key.Asset, 900))
	b.exec(t, manyCallsSQL, many)
	b.exec(t, manyRefundsSQL)
	b.paid(t, 900)
	b.paidOut(t, b.leaves(t, common.Address{19: 9}, 700), b.spend(t, common.Address{19: 9}, 700))
	b.exec(t, `ALTER TABLE payouts DISABLE TRIGGER payouts_checked`)
	b.exec(t, manyPayoutsSQL, many)
	b.exec(t, manyTransfersSQL)
	b.exec(t, agreedSQL, many)
	b.exec(t, `ANALYZE calls, refunds, payouts, wallet_transfers, ledger_transactions, ledger_postings`)
	reach := []any{b.key.Network, b.key.Asset[:], b.key.Treasury[:], int64(many + 995), int64(many + 1000)}
	transfers := []string{"calls_transfer_unique", "refunds_transfer_unique", "payouts_transfer_unique"}
	tests := map[string]struct {
		sql  string
		args []any
		by   []string
	}{
		"since when":         {sinceSQL, append(reach[:3:3], reach[4]), []string{"ledger_postings_pkey", "ledger_transactions_pkey"}},
		"what is matched":    {matchSQL, reach[:3], append(transfers, "wallet_transfers_claimable")},
		"what is parted":     {partSQL, reach, append(transfers, "wallet_transfers_by_block")},
		"logs without a row": {unmatchedSQL, append(reach[:3:3], 9), []string{"wallet_transfers_claimable"}},
		"rows without a log": {missingSQL, append(reach[:5:5], 9), []string{"calls_by_block", "refunds_by_block", "payouts_by_block", "wallet_transfers_pkey"}},
		"books and rows":     {sumsSQL, reach, []string{"ledger_postings_by_block", "ledger_transactions_pkey", "calls_by_block", "refunds_by_block", "payouts_by_block"}},
		"logs":               {movedSQL, reach, []string{"wallet_transfers_by_block"}},
	}
	for name, tt := range tests {
		rows, err := b.db.Query(t.Context(), "EXPLAIN (COSTS off) "+tt.sql, tt.args...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan := strings.Join(lines, "\n")
		for _, index := range tt.by {
			if !strings.Contains(plan, index) {
				t.Errorf("%s: not read by %s:\n%s", name, index, plan)
			}
		}
		for _, whole := range []string{"Scan on calls", "Scan on refunds", "Scan on payouts", "Scan on ledger_postings", "Scan on ledger_transactions", "Scan on wallet_transfers"} {
			if strings.Contains(plan, "Seq "+whole) {
				t.Errorf("%s: a whole table is read:\n%s", name, plan)
			}
		}
		for i, line := range lines {
			if strings.Contains(line, "_by_block") && (i+1 == len(lines) || !strings.Contains(lines[i+1], "Index Cond") || !strings.Contains(lines[i+1], "block_number > ")) {
				t.Errorf("%s: where it begins is no condition of the index:\n%s", name, plan)
			}
		}
	}
}

// fold is what a process does before it looks.
func (b *bench) fold(t *testing.T) {
	t.Helper()
	if err := (ledger.Store{}).Fold(t.Context(), b.db); err != nil {
		t.Fatal(err)
	}
}
