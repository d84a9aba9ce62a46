package apptest

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/jackc/pgx/v5"

	"market/internal/devnet"
)

// Books is what the database says of one call. Empty members are not there (yet).
type Books struct {
	State, Payment, Outcome, Reason, Refund string
	Late, Review                            bool
}

const booksSQL = `
SELECT c.state, coalesce(c.payment_state, ''), coalesce(d.outcome, ''), coalesce(d.reason, ''), coalesce(r.state, ''), c.late, c.review
  FROM calls c LEFT JOIN deliveries d ON d.call_id = c.id LEFT JOIN refunds r ON r.call_id = c.id
 WHERE c.id = $1`

// Books reads what is kept of a call.
func (w *World) Books(t testing.TB, id string) Books {
	t.Helper()
	rows, err := w.DB.Query(t.Context(), booksSQL, id)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Books])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("books of call %q: %v", id, err)
	}
	return b
}

// Count counts the calls in a state.
func (w *World) Count(t testing.TB, state string) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM calls WHERE state = $1`, state)
}

// CountRefunds counts the refunds in a state.
func (w *World) CountRefunds(t testing.TB, state string) int {
	t.Helper()
	return w.count(t, `SELECT count(*) FROM refunds WHERE state = $1`, state)
}

func (w *World) count(t testing.TB, sql, state string) (n int) {
	t.Helper()
	if err := w.DB.QueryRow(t.Context(), sql, state).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// AwaitBooks waits until the books say of a call what they should.
func (w *World) AwaitBooks(t testing.TB, id string, want Books) {
	t.Helper()
	var got Books
	defer func() {
		if got != want {
			t.Errorf("the books say %+v, want %+v", got, want)
		}
	}()
	Eventually(t, "the books of call "+id, func() bool {
		got = w.Books(t, id)
		return got == want
	})
}

// A Transfer is one movement of the token.
type Transfer struct {
	From, To    common.Address
	Units       uint64
	Transaction common.Hash
	Block       uint64
}

// Transfers returns what the chain says was moved to a wallet and from it.
func (w *World) Transfers(t testing.TB, wallet common.Address) (in, out []Transfer) {
	t.Helper()
	client, err := ethclient.DialContext(t.Context(), w.Chain.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	logs, err := client.FilterLogs(t.Context(), ethereum.FilterQuery{
		FromBlock: new(big.Int), Addresses: []common.Address{devnet.TokenAddress()},
		Topics: [][]common.Hash{{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range logs {
		move := Transfer{From: common.BytesToAddress(l.Topics[1][:]), To: common.BytesToAddress(l.Topics[2][:]),
			Units: new(big.Int).SetBytes(l.Data).Uint64(), Transaction: l.TxHash, Block: l.BlockNumber}
		if move.To == wallet {
			in = append(in, move)
		}
		if move.From == wallet {
			out = append(out, move)
		}
	}
	return in, out
}
