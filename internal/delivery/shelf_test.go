package delivery

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
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
	"market/internal/refund"
	"market/internal/strikes"
)

const (
	rest    = time.Minute // of a service, after a failure; strikes fold for as long
	network = "eip155:84532"
)

var (
	policy = strikes.Policy{Limit: 3, Window: 24 * time.Hour, Fold: rest}
	source = netip.MustParseAddr("192.0.2.1")
)

// A shelf is one listed service with one endpoint, a recorder with the real job queue, and market time that stands still.
type shelf struct {
	db       *pgxpool.Pool
	service  catalog.Service
	endpoint *catalog.Endpoint
	recorder *Recorder
	owner    uuid.UUID // this process
	opened   time.Time // market time, until the test shifts it
}

func newShelf(t *testing.T) shelf {
	t.Helper()
	s := shelf{db: pgtest.New(t), owner: uuid.Must(uuid.NewV7())}
	s.opened = pgtest.Freeze(t, s.db)
	draft, err := catalog.ParseDraft([]byte(`{"slug":"weather","name":"Weather","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},
		"endpoints":[{"method":"GET","path":"/","price_usd":"0.01","trial_calls_per_day":3}]}`), catalog.Rules{})
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
	s.endpoint = s.service.Endpoints[0]
	jobs, err := river.NewClient(riverpgxv5.New(s.db), &river.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.recorder = NewRecorder(s.db, jobs, policy, rest, time.Hour)
	return s
}

// counting returns a recorder with other settings than the shelf's own.
func (s shelf) counting(jobs Jobs, p strikes.Policy, rest time.Duration) *Recorder {
	return NewRecorder(s.db, jobs, p, rest, 24*time.Hour)
}

// claim takes a payment that nobody has made before.
func (s shelf) claim(t *testing.T) payment.Claim {
	t.Helper()
	return s.claimOf(t, money.FromUnits(10_000), 250)
}

// claimOf is claim of another price and fee.
func (s shelf) claimOf(t *testing.T, price money.Amount, feeBPS int) payment.Claim {
	t.Helper()
	c := payment.Claim{
		ID: call.NewID(), Network: network,
		Signed: chain.Signed{Asset: common.Address{0xa5}, Signature: anySignature(t), Authorization: chain.Authorization{
			From: common.Address{0xca}, To: common.Address{0x1e}, Value: price, ValidBefore: 1_800_000_000,
		}},
		Service: s.service.ID, Endpoint: s.endpoint.ID, PriceRevision: s.endpoint.Prices[0].Revision, FeeBPS: feeBPS,
		Method: "GET", Path: "/", Source: source, Origin: call.External, Owner: s.owner, Lease: settleLease,
	}
	_, _ = rand.Read(c.Signed.Nonce[:]) // never fails
	_, claimed, err := payment.Store{}.Claim(t.Context(), s.db, c)
	if err != nil || !claimed {
		t.Fatalf("claimed = %v, %v", claimed, err)
	}
	return c
}

// proof returns a transfer that has proved nothing before.
func proof() chain.Proof {
	p := chain.Proof{LogIndex: 3, BlockNumber: 90, BlockHash: common.Hash{0xb1}}
	_, _ = rand.Read(p.Transaction[:]) // never fails
	return p
}

// paid settles a fresh payment. The service is asked by then, unless it rests or has left the shelf.
func (s shelf) paid(t *testing.T) (Delivery, standing) {
	t.Helper()
	return s.settle(t, s.claim(t), proof())
}

// settle writes the proof of a claimed payment.
func (s shelf) settle(t *testing.T, c payment.Claim, p chain.Proof) (Delivery, standing) {
	t.Helper()
	standing, err := settled(t.Context(), s.db, c.ID, s.owner, s.service.ID, p, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	back := refund.Derive(refund.Payment{Call: c.ID, Network: c.Network, ChainID: 84532, Asset: c.Signed.Asset, Payer: c.Signed.From,
		Nonce: c.Signed.Nonce, Amount: c.Signed.Value, Treasury: c.Signed.To, Transaction: p.Transaction})
	d := Delivery{
		ID: uuid.Must(uuid.NewV7()), Call: c.ID, Service: s.service.ID, Endpoint: s.endpoint.ID, Origin: call.External,
		Method: "GET", Path: "/", Source: source, Payer: c.Signed.From, Refund: &back, owner: s.owner,
	}
	return d, standing
}

// asked returns a paid call whose service is being asked. As it stands, it ends refunded.
func (s shelf) asked(t *testing.T) Delivery {
	t.Helper()
	d, standing := s.paid(t)
	if no := resting(standing); no != nil {
		t.Fatalf("the service is not asked: %v", no)
	}
	d.AskedAt = standing.askedAt
	return d
}

// served ends a call well: nothing is paid back.
func (d Delivery) served() Delivery {
	d = d.end(call.OK, "")
	d.Refund, d.Status = nil, 200
	return d
}

func (d Delivery) failed() Delivery { return d.end(call.Upstream5xx, "status 500") }

// trial returns a trial call whose service is being asked now.
func (s shelf) trial(t *testing.T) Delivery {
	t.Helper()
	now, err := postgres.MarketNow(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	return Delivery{ID: uuid.Must(uuid.NewV7()), Call: call.NewID(), Trial: true, Service: s.service.ID, Endpoint: s.endpoint.ID,
		Origin: call.External, AskedAt: now, Method: "GET", Path: "/", Source: source}
}

func (s shelf) record(t *testing.T, d Delivery) {
	t.Helper()
	if err := s.recorder.Record(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// fail records a failure of a call that is asked and answered now.
func (s shelf) fail(t *testing.T) Delivery {
	t.Helper()
	d := s.asked(t).failed()
	s.record(t, d)
	return d
}

func (s shelf) state(t *testing.T, id call.ID) call.State {
	t.Helper()
	var state call.State
	if err := s.db.QueryRow(t.Context(), `SELECT state FROM calls WHERE id = $1`, id).Scan(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

// A world is everything that a recorder may write, counted.
type world struct {
	Deliveries, OpenStrikes, ClearedStrikes, Evidence, Cooldowns, Refunds, Jobs int
	Service                                                                     catalog.State
}

const worldSQL = `
SELECT (SELECT count(*) FROM deliveries), (SELECT count(*) FROM strikes WHERE state = 'open'),
       (SELECT count(*) FROM strikes WHERE state = 'cleared'), (SELECT count(*) FROM strike_deliveries), (SELECT count(*) FROM cooldowns),
       (SELECT count(*) FROM refunds), (SELECT count(*) FROM river_job WHERE kind = 'refund'), (SELECT state FROM services WHERE id = $1)`

func (s shelf) world(t *testing.T) world {
	t.Helper()
	rows, err := s.db.Query(t.Context(), worldSQL, s.service.ID)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[world])
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (s shelf) want(t *testing.T, when string, want world) {
	t.Helper()
	if want.Service == "" {
		want.Service = catalog.Listed
	}
	if got := s.world(t); got != want {
		t.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

// rests returns how long the service still rests.
func (s shelf) rests(t *testing.T) time.Duration {
	t.Helper()
	const restsSQL = `SELECT coalesce(max(until - market_now()), '0') FROM cooldowns WHERE service_id = $1`
	var left time.Duration
	if err := s.db.QueryRow(t.Context(), restsSQL, s.service.ID).Scan(&left); err != nil {
		t.Fatal(err)
	}
	return max(0, left)
}

func (s shelf) delist(ctx context.Context) error {
	_, err := catalog.Store{}.Delist(ctx, s.db, s.service.ID, "for the test")
	return err
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
