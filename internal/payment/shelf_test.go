package payment

import (
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
	"market/internal/postgres/pgtest"
)

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

// claim returns a claim of a payment that nobody has made before.
func (s shelf) claim(t *testing.T) Claim {
	t.Helper()
	c := Claim{
		ID: call.NewID(), Network: baseSepolia.ID,
		Signed: chain.Signed{Asset: usdc.Address, Signature: signature(t, 0), Authorization: chain.Authorization{
			From: common.HexToAddress(goldenPayer), To: common.HexToAddress(goldenTreasury), Value: money.FromUnits(10_000), ValidBefore: 1_800_000_000,
		}},
		Service: s.service.ID, Endpoint: s.service.Endpoints[0].ID, PriceRevision: s.service.Endpoints[0].Prices[0].Revision, FeeBPS: 250,
		Fingerprint: Fingerprint{1}, Method: "GET", Path: "/", Source: netip.MustParseAddr("192.0.2.1"), Origin: call.External,
		Owner: uuid.Must(uuid.NewV7()), Lease: 30 * time.Second,
	}
	_, _ = rand.Read(c.Signed.Nonce[:]) // never fails
	return c
}

// take claims what must be free to claim, and returns the call's id.
func (s shelf) take(t *testing.T, c Claim) call.ID {
	t.Helper()
	id, claimed, err := Store{}.Claim(t.Context(), s.db, c)
	if err != nil || !claimed {
		t.Fatalf("claimed = %v, %v; want it claimed", claimed, err)
	}
	return id
}

func (s shelf) find(t *testing.T, c Claim) Call {
	t.Helper()
	found, err := Store{}.Find(t.Context(), s.db, c.Identity())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const moveSQL = `UPDATE calls SET state = $2, asked_at = market_now() WHERE id = $1`

const proveSQL = `
UPDATE calls SET transaction = $2, log_index = 7, block_number = 9, block_hash = $2, payment_state = 'mined' WHERE id = $1`

// move puts a call into a state, with the proof that most states need where proof is not zero.
func (s shelf) move(t *testing.T, id call.ID, to call.State, proof common.Hash) {
	t.Helper()
	if proof != (common.Hash{}) {
		if _, err := s.db.Exec(t.Context(), proveSQL, id, proof[:]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.Exec(t.Context(), moveSQL, id, to); err != nil {
		t.Fatal(err)
	}
}

const believeSQL = `
UPDATE calls SET sent_transaction = decode(repeat('5e', 32), 'hex'), word_of = 'hosted', word_at = market_now(), payment_state = $3, state = $2,
       asked_at = market_now()
 WHERE id = $1`

// believe puts a call into a state on a facilitator's word.
func (s shelf) believe(t *testing.T, id call.ID, to call.State, payment string) {
	t.Helper()
	if _, err := s.db.Exec(t.Context(), believeSQL, id, to, payment); err != nil {
		t.Fatal(err)
	}
}

// release says that nothing of a claimed payment left us.
func (s shelf) release(t *testing.T, id call.ID, c Claim) {
	t.Helper()
	if err := (Store{}).Unsettle(t.Context(), s.db, id, c.Owner, call.StateReleased, "node out of reach", common.Hash{}); err != nil {
		t.Fatal(err)
	}
}
