package ledger_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/ledger"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

const (
	network = "eip155:84532"
	price   = 10_001 // 2.5 % of it is no whole number
	share   = "-9751"
	fee     = "-250"
)

var (
	books    ledger.Store
	asset    = common.Address{0xa5}
	treasury = common.Address{0x1e}
)

// A shelf is one listed service of an account.
type shelf struct {
	db      *pgxpool.Pool
	owner   uuid.UUID
	service catalog.Service
}

const ownedSQL = `
WITH account AS (
	INSERT INTO accounts (id, wallet) VALUES ($2::uuid, decode(md5($2::uuid::text), 'hex') || decode('00000000', 'hex')) RETURNING id
)
UPDATE services SET owner_id = account.id FROM account WHERE services.id = $1`

func newShelf(t testing.TB) shelf {
	t.Helper()
	s := shelf{db: pgtest.New(t)}
	draft, err := catalog.ParseDraft([]byte(`{"slug":"weather","name":"Weather","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.010001"}]}`), catalog.Rules{})
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
	s.owner = s.sell(t)
	return s
}

// sell gives the service to an account that is new.
func (s shelf) sell(t testing.TB) uuid.UUID {
	t.Helper()
	owner := uuid.Must(uuid.NewV7())
	s.exec(t, ownedSQL, s.service.ID, owner)
	return owner
}

// exec runs a statement that changes one row.
func (s shelf) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if tag, err := s.db.Exec(t.Context(), sql, args...); err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%s: %d rows, %v", sql, tag.RowsAffected(), err)
	}
}

// claim takes a payment that nobody has made before.
func (s shelf) claim(t testing.TB) call.ID {
	t.Helper()
	signature, err := chain.ParseSignature(append(bytes.Repeat([]byte{1}, 64), 27))
	if err != nil {
		t.Fatal(err)
	}
	e := s.service.Endpoints[0]
	c := payment.Claim{
		ID: call.NewID(), Network: network,
		Signed: chain.Signed{Asset: asset, Signature: signature, Authorization: chain.Authorization{
			From: common.Address{0xca}, To: treasury, Value: money.FromUnits(price), ValidBefore: 1_800_000_000}},
		Service: s.service.ID, Endpoint: e.ID, PriceRevision: e.Prices[0].Revision, FeeBPS: 250, Method: "GET", Path: "/",
		Source: netip.MustParseAddr("192.0.2.1"), Origin: call.External, Owner: uuid.Must(uuid.NewV7()), Lease: time.Minute,
	}
	_, _ = rand.Read(c.Signed.Nonce[:]) // never fails
	if _, claimed, err := (payment.Store{}).Claim(t.Context(), s.db, c); err != nil || !claimed {
		t.Fatalf("claimed = %v, %v", claimed, err)
	}
	return c.ID
}

const (
	proveSQL = `
UPDATE calls SET state = 'asked', asked_at = market_now(), transaction = $2, log_index = 3, block_number = $3, block_hash = $2, payment_state = 'mined'
 WHERE id = $1`
	endSQL = `
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, method, path, source)
SELECT gen_random_uuid(), id, false, service_id, endpoint_id, $2, 'ok', 'service', 'external', false, method, path, source FROM calls WHERE id = $1`
	oweSQL = `
INSERT INTO refunds (call_id, network, asset, payer, amount, authorizer, nonce, payment_nonce, payment_transaction)
SELECT id, network, asset, payer, amount, treasury, nonce, nonce, transaction FROM calls WHERE id = $1`
	confirmSQL = `
UPDATE refunds SET state = 'confirmed', transaction = $2, log_index = 5, block_number = 200, confirmed_at = market_now() WHERE call_id = $1`
	loseSQL = `UPDATE calls SET payment_state = 'lost' WHERE id = $1`
	voidSQL = `UPDATE refunds SET state = 'void' WHERE call_id = $1`
)

func transaction() (h common.Hash) {
	_, _ = rand.Read(h[:]) // never fails
	return h
}

func (s shelf) paid(t testing.TB) call.ID {
	t.Helper()
	id, tx := s.claim(t), transaction()
	s.exec(t, proveSQL, id, tx[:], 100)
	return id
}

func (s shelf) served(t testing.TB) call.ID {
	t.Helper()
	id := s.paid(t)
	s.exec(t, endSQL, id, "served")
	return id
}

func (s shelf) refunded(t testing.TB) call.ID {
	t.Helper()
	id := s.paid(t)
	s.exec(t, endSQL, id, "failed")
	s.exec(t, oweSQL, id)
	return id
}

// holds returns what the books hold for a call, by account and transfer, as "account amount" with the block of a transfer.
func (s shelf) holds(t testing.TB, id call.ID) []string {
	t.Helper()
	postings, err := books.OfCall(t.Context(), s.db, id)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[ledger.Posting]money.Signed{}
	for _, p := range postings {
		key := ledger.Posting{Account: p.Account, Owner: p.Owner, Transfer: p.Transfer}
		sums[key] = sums[key].Add(p.Amount)
	}
	out := []string{}
	for key, sum := range sums {
		text := fmt.Sprintf("%s %s", key.Account, sum)
		if key.Transfer.Block != 0 {
			text += fmt.Sprintf(" @%d", key.Transfer.Block)
		}
		if sum.Sign() != 0 {
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return out
}

func (s shelf) want(t testing.TB, when string, id call.ID, want ...string) {
	t.Helper()
	if got := s.holds(t, id); !slices.Equal(got, want) {
		t.Errorf("%s: the books hold %q, want %q", when, got, want)
	}
}

func (s shelf) sound(t testing.TB) {
	t.Helper()
	if found, err := books.Check(t.Context(), s.db, 10); err != nil || !found.Sound() {
		t.Errorf("the books are not sound: %+v, %v", found, err)
	}
}

// trial returns the balances by account.
func (s shelf) trial(t testing.TB) map[ledger.Account]string {
	t.Helper()
	all, err := books.TrialBalance(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	got := map[ledger.Account]string{}
	for _, b := range all {
		if b.Network != network || b.Asset != asset || b.Treasury != treasury {
			t.Errorf("a balance of %+v", b)
		}
		got[b.Account] = b.Amount.String()
	}
	return got
}

// wantRefused says whether the database refuses a statement by a constraint.
func (s shelf) wantRefused(t testing.TB, db postgres.DB, constraint, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.ConstraintName != constraint {
		t.Errorf("%s: %v, want it refused by %s", sql, err, constraint)
	}
}

func entry(kind ledger.EntryKind, amount uint64) ledger.Entry {
	return ledger.Entry{Network: network, Asset: asset, Treasury: treasury, Kind: kind, Amount: money.FromUnits(amount),
		Transfer: ledger.Transfer{Transaction: transaction(), LogIndex: 1, Block: 50}, Reason: "for the test", By: "admin"}
}

func (s shelf) post(t testing.TB, e ledger.Entry) {
	t.Helper()
	if _, err := books.Post(t.Context(), s.db, e); err != nil {
		t.Fatal(err)
	}
}
