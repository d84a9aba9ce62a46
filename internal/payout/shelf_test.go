package payout

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
)

// treasuryKey is a well-known development key.
const treasuryKey = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"

var (
	network = chain.Network{
		ID: "eip155:84532", ChainID: 84532, Confirmations: 2, ServeAtDepth: 1,
		Assets: []chain.Asset{{Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), Symbol: "USDC", Decimals: 6,
			EIP712Name: "USDC", EIP712Version: "2"}},
	}
	payee = common.HexToAddress("0x90F79bf6EB2c4f870365E785982E1f101E93b906")
)

// The price of a call is 10,000 units, of which the provider gets 9,750.
const (
	price  = 10_000
	feeBPS = 250
	share  = 9_750
)

func treasury(t *testing.T) chain.Key {
	t.Helper()
	k, err := chain.ParseKey(treasuryKey)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A shelf is one listed service of an account, and market time that stands still.
type shelf struct {
	db      *pgxpool.Pool
	service catalog.Service
	purse   Purse
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	s := shelf{db: pgtest.New(t)}
	pgtest.Freeze(t, s.db)
	return s.another(t, "weather", network.Assets[0].Address)
}

// another is the shelf of another account with a service of its own.
func (s shelf) another(t *testing.T, slug string, asset common.Address) shelf {
	t.Helper()
	s.purse = Purse{Account: uuid.Must(uuid.NewV7()), Network: network.ID, Asset: asset, Treasury: treasury(t).Address()}
	var wallet common.Address
	_, _ = rand.Read(wallet[:]) // never fails
	if _, err := s.db.Exec(t.Context(), `INSERT INTO accounts (id, wallet) VALUES ($1, $2)`, s.purse.Account, wallet[:]); err != nil {
		t.Fatal(err)
	}
	draft, err := catalog.ParseDraft([]byte(`{"slug":"`+slug+`","name":"Weather","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	draft.Owner = s.purse.Account
	err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		s.service, err = catalog.Store{}.Create(t.Context(), tx, draft)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// paidTo gives the account an address.
func (s shelf) paidTo(t *testing.T, address common.Address) shelf {
	t.Helper()
	s.setAddress(t, address)
	return s
}

func (s shelf) setAddress(t *testing.T, address common.Address) (a Address) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		a, err = Store{}.SetAddress(t.Context(), tx, s.purse.Account, network.ID, address, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

const (
	proveSQL = `
UPDATE calls SET transaction = $2, log_index = 1, block_number = 90, block_hash = $2, state = 'asked', asked_at = market_now(), payment_state = 'mined'
 WHERE id = $1`
	deliverSQL = `
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, method, path, source, recorded_at)
SELECT $2, id, false, service_id, endpoint_id, 'served', 'ok', 'service', origin, true, asked_at, method, path, source, market_now() FROM calls WHERE id = $1`
	finalSQL = `UPDATE calls SET payment_state = 'final' WHERE id = $1`
)

// served claims a payment and ends its call as served. It is proved, and not final.
func (s shelf) served(t *testing.T) call.ID {
	t.Helper()
	id, e := call.NewID(), s.service.Endpoints[0]
	var nonce, transaction common.Hash
	_, _ = rand.Read(nonce[:]) // never fails
	_, _ = rand.Read(transaction[:])
	signature, err := chain.ParseSignature(append(bytes.Repeat([]byte{1}, 64), 27))
	if err != nil {
		t.Fatal(err)
	}
	_, claimed, err := payment.Store{}.Claim(t.Context(), s.db, payment.Claim{
		ID: id, Network: s.purse.Network,
		Signed: chain.Signed{Asset: s.purse.Asset, Signature: signature, Authorization: chain.Authorization{
			From: common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"), To: s.purse.Treasury, Value: money.FromUnits(price),
			ValidBefore: 1_800_000_000, Nonce: nonce,
		}},
		Service: s.service.ID, Endpoint: e.ID, PriceRevision: e.Prices[0].Revision, FeeBPS: feeBPS, Method: e.Method, Path: e.Path,
		Source: netip.MustParseAddr("192.0.2.1"), Origin: call.External, Owner: uuid.Must(uuid.NewV7()), Lease: time.Minute,
	})
	if err != nil || !claimed {
		t.Fatalf("claimed = %v, %v", claimed, err)
	}
	s.exec(t, proveSQL, id, transaction[:])
	s.exec(t, deliverSQL, id, uuid.Must(uuid.NewV7()))
	return id
}

// earn serves n calls whose payments are final.
func (s shelf) earn(t *testing.T, n int) {
	t.Helper()
	for range n {
		s.exec(t, finalSQL, s.served(t))
	}
}

func (s shelf) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := s.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (s shelf) try(ctx context.Context, least uint64) (Payout, error) {
	return Store{}.Make(ctx, s.db, s.purse, network.ChainID, money.FromUnits(least), nil, "a test")
}

// make makes the payout of all that is there.
func (s shelf) make(t *testing.T) Payout {
	t.Helper()
	p, err := s.try(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// owed is a shelf with a payout of n calls.
func owed(t *testing.T, n int) (shelf, Payout) {
	t.Helper()
	s := newShelf(t).paidTo(t, payee)
	s.earn(t, n)
	return s, s.make(t)
}

// find returns a payout and how long it is left alone.
func (s shelf) find(t *testing.T, id uuid.UUID) (p Payout, wait time.Duration) {
	t.Helper()
	p, err := Store{}.Find(t.Context(), s.db, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.db.QueryRow(t.Context(), `SELECT next_at - market_now() FROM payouts WHERE id = $1`, id).Scan(&wait); err != nil {
		t.Fatal(err)
	}
	return p, wait
}

func (s shelf) number(t *testing.T, sql string, args ...any) (n int64) {
	t.Helper()
	if err := s.db.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
