package delivery

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/ledger"
	"market/internal/refusal"
)

// Two treasuries; one gave the other something by the first log, and got something from a stranger by the second.
const (
	twoWalletsSQL = `
INSERT INTO wallets (network, asset, treasury, opening_block, opening_balance, scanned_block, scanned_hash, held_block, held, agreed_block, agreed_books)
SELECT 'eip155:1', decode(repeat('a5', 20), 'hex'), decode(repeat(t, 20), 'hex'), 1, 0, 9, decode(repeat('ab', 32), 'hex'), 9, 0, 1, 0 FROM unnest(ARRAY ['01', '02']) t`
	threeTransfersSQL = `
INSERT INTO wallet_transfers (network, asset, treasury, transaction, log_index, block_number, block_hash, direction, counterparty, amount)
SELECT 'eip155:1', decode(repeat('a5', 20), 'hex'), decode(repeat(treasury, 20), 'hex'), decode(repeat('cc', 32), 'hex'), log_index, 7, decode(repeat('ab', 32), 'hex'), direction,
       decode(repeat(other, 20), 'hex'), 400
  FROM (VALUES ('01', 1, 'out', '02'), ('02', 1, 'in', '01'), ('01', 2, 'out', '77')) v (treasury, log_index, direction, other)`
)

func TestBookEntry_WhatMovedIsBookedOnceAndOnlyBetweenOurTreasuries(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, sql := range []string{twoWalletsSQL, threeTransfersSQL} {
		if _, err := s.db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	order := EntryOrder{Kind: ledger.Moved, Network: "eip155:1", Transaction: common.HexToHash("0xcccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"), LogIndex: 1}
	book := func(o EntryOrder) (ledger.Entry, error) {
		return BookEntry(t.Context(), s.db, o, catalog.AdminToken, "a new key")
	}
	got, err := book(order)
	if err != nil || got.Treasury != common.BytesToAddress(repeated(0x01)) || got.To != common.BytesToAddress(repeated(0x02)) || got.Amount.String() != "400" {
		t.Fatalf("booked %+v, %v", got, err)
	}
	elsewhere, unknown := order, order
	elsewhere.LogIndex, unknown.LogIndex = 2, 3
	for name, tt := range map[string]struct {
		order EntryOrder
		want  call.Reason
	}{
		"a second time":                   {order, call.Conflict},
		"what went to a stranger":         {elsewhere, call.Conflict},
		"what nobody has seen":            {unknown, call.NotFound},
		"what went out, as what came in":  {EntryOrder{ledger.TopUp, order.Network, order.Transaction, 2}, call.NotFound},
		"what went out, without the fees": {EntryOrder{ledger.FeeWithdrawal, order.Network, order.Transaction, 2}, call.Conflict},
	} {
		_, err := book(tt.order)
		if no, is := errors.AsType[*refusal.Error](err); !is || no.Reason != tt.want {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

func repeated(b byte) []byte {
	all := make([]byte, common.AddressLength)
	for i := range all {
		all[i] = b
	}
	return all
}
