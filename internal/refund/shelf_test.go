package refund

import (
	"bytes"
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

var network = chain.Network{
	ID: "eip155:84532", ChainID: 84532, Confirmations: 2, ServeAtDepth: 1,
	Assets: []chain.Asset{{Address: common.HexToAddress("0x036CbD53842c5426634e7929541eC2318f3dCF7e"), Symbol: "USDC", Decimals: 6,
		EIP712Name: "USDC", EIP712Version: "2"}},
}

func treasury(t *testing.T) chain.Key {
	t.Helper()
	k, err := chain.ParseKey(treasuryKey)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// A shelf is one listed service with one endpoint, and market time that stands still.
type shelf struct {
	db      *pgxpool.Pool
	service catalog.Service
	opened  time.Time // market time, until the test shifts it
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	s := shelf{db: pgtest.New(t)}
	s.opened = pgtest.Freeze(t, s.db)
	draft, err := catalog.ParseDraft([]byte(`{"slug":"weather","name":"Weather","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		s.service, err = catalog.Store{}.Create(t.Context(), tx, draft)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// payment claims a payment and returns it as if its settlement had been proved.
func (s shelf) payment(t *testing.T) Payment {
	t.Helper()
	p := Payment{
		Call: call.NewID(), Network: network.ID, ChainID: network.ChainID, Asset: network.Assets[0].Address,
		Payer: common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"), Amount: money.FromUnits(10_000),
		Treasury: treasury(t).Address(),
	}
	_, _ = rand.Read(p.Nonce[:]) // never fails
	_, _ = rand.Read(p.Transaction[:])
	e := s.service.Endpoints[0]
	_, claimed, err := payment.Store{}.Claim(t.Context(), s.db, payment.Claim{
		ID: p.Call, Network: p.Network,
		Signed: chain.Signed{Asset: p.Asset, Signature: anySignature(t), Authorization: chain.Authorization{
			From: p.Payer, To: p.Treasury, Value: p.Amount, ValidBefore: 1_800_000_000, Nonce: p.Nonce,
		}},
		Service: s.service.ID, Endpoint: e.ID, PriceRevision: e.Prices[0].Revision, Method: e.Method, Path: e.Path,
		Source: netip.MustParseAddr("192.0.2.1"), Origin: call.External, Owner: uuid.Must(uuid.NewV7()), Lease: time.Minute,
	})
	if err != nil || !claimed {
		t.Fatalf("claimed = %v, %v", claimed, err)
	}
	return p
}

// owe owes the refund of a fresh payment.
func (s shelf) owe(t *testing.T) Owed {
	t.Helper()
	o := Derive(s.payment(t))
	if err := (Store{}).Owe(t.Context(), s.db, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// find returns a refund and how long it is left alone.
func (s shelf) find(t *testing.T, o Owed) (r Refund, wait time.Duration) {
	t.Helper()
	r, err := Store{}.Find(t.Context(), s.db, o.Payment.Call)
	if err != nil {
		t.Fatal(err)
	}
	const waitSQL = `SELECT next_at - market_now() FROM refunds WHERE call_id = $1`
	if err := s.db.QueryRow(t.Context(), waitSQL, o.Payment.Call).Scan(&wait); err != nil {
		t.Fatal(err)
	}
	return r, wait
}

// anySignature is one that a key could have given, over what nobody looks at.
func anySignature(t *testing.T) chain.Signature {
	t.Helper()
	s, err := chain.ParseSignature(append(bytes.Repeat([]byte{1}, 64), 27))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
