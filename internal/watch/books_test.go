package watch

import (
	"bytes"
	"context"
	"crypto/rand"
	"math"
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
	"market/internal/delivery"
	"market/internal/ledger"
	"market/internal/money"
	"market/internal/notify"
	"market/internal/payment"
	"market/internal/payout"
	"market/internal/postgres/pgtest"
	"market/internal/refund"
)

// settledSQL is what a proved settlement leaves; the call has ended where its service is not being asked.
const settledSQL = `
UPDATE calls SET state = $2, payment_state = $3, transaction = nonce, log_index = 1, block_number = 1, block_hash = nonce, asked_at = market_now() WHERE id = $1`

// pay makes a call that is paid to a treasury, in a state and with the life of its payment.
func pay(t *testing.T, db *pgxpool.Pool, treasury common.Address, units uint64, state, life string) refund.Payment {
	t.Helper()
	slug := "s" + uuid.NewString()[:8]
	draft, err := catalog.ParseDraft([]byte(`{"slug":"`+slug+`","name":"S","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var service catalog.Service
	err = pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) (err error) {
		service, err = catalog.Store{}.Create(t.Context(), tx, draft)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := chain.ParseSignature(append(bytes.Repeat([]byte{1}, 64), 27))
	if err != nil {
		t.Fatal(err)
	}
	p := refund.Payment{Call: call.NewID(), Network: network.ID, ChainID: 1, Asset: usdc, Payer: common.Address{0xbb}, Amount: money.FromUnits(units), Treasury: treasury}
	_, _ = rand.Read(p.Nonce[:]) // never fails
	e := service.Endpoints[0]
	_, claimed, err := payment.Store{}.Claim(t.Context(), db, payment.Claim{
		ID: p.Call, Network: p.Network, Signed: chain.Signed{Asset: p.Asset, Signature: signature, Authorization: chain.Authorization{
			From: p.Payer, To: p.Treasury, Value: p.Amount, ValidBefore: 1_800_000_000, Nonce: p.Nonce}},
		Service: service.ID, Endpoint: e.ID, PriceRevision: e.Prices[0].Revision, Method: e.Method, Path: e.Path,
		Source: netip.MustParseAddr("192.0.2.1"), Origin: call.External, Owner: uuid.Must(uuid.NewV7()), Lease: time.Minute,
	})
	if err != nil || !claimed {
		t.Fatalf("claimed = %v, %v", claimed, err)
	}
	if _, err := db.Exec(t.Context(), settledSQL, p.Call, state, life); err != nil {
		t.Fatal(err)
	}
	return p
}

// oweRefund makes a call that failed, and whose refund stands so.
func oweRefund(t *testing.T, db *pgxpool.Pool, treasury common.Address, units uint64, state, why string) call.ID {
	t.Helper()
	p := pay(t, db, treasury, units, "failed", "final")
	if err := (refund.Store{}).Owe(t.Context(), db, refund.Derive(p)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `UPDATE refunds SET state = $2, why = $3 WHERE call_id = $1`, p.Call, state, why); err != nil {
		t.Fatal(err)
	}
	return p.Call
}

func TestLiabilities_AreWhatWasReceivedAndMayHaveToBeGivenBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	mine, old := common.Address{0xaa}, common.Address{0xab}
	pay(t, db, mine, 1, "asked", "mined")
	pay(t, db, mine, 2, "settled", "final")
	pay(t, db, mine, 4, "served", "final")
	oweRefund(t, db, mine, 8, "owed", "")
	oweRefund(t, db, mine, 16, "sent", "")
	oweRefund(t, db, old, 32, "parked", "")
	oweRefund(t, db, mine, 64, "void", "")
	id := oweRefund(t, db, mine, 128, "owed", "") // of a payment that the chain took back
	if _, err := db.Exec(t.Context(), `UPDATE calls SET payment_state = 'lost' WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	owed, err := delivery.Liabilities(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	got := map[common.Address][2]string{}
	for _, l := range owed {
		got[l.Treasury] = [2]string{l.Refunds.String(), l.Open.String()}
	}
	if want := (map[common.Address][2]string{mine: {"24", "3"}, old: {"32", "0"}}); len(got) != 2 || got[mine] != want[mine] || got[old] != want[old] {
		t.Errorf("refunds and open calls by treasury are %v, want %v", got, want)
	}
}

const servedSQL = `
WITH served AS (UPDATE calls SET state = 'served', payment_state = $3, provider_id = $4, block_number = $5 WHERE id = $1 RETURNING *)
INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, asked_at, method, path, source, recorded_at)
SELECT $2, id, false, service_id, endpoint_id, 'served', 'ok', 'service', origin, true, asked_at, method, path, source, market_now() FROM served`

// earn has a provider earn all of a call, which is paid to a treasury at a block.
func earn(t *testing.T, db *pgxpool.Pool, provider uuid.UUID, treasury common.Address, units uint64, life string, block int) {
	t.Helper()
	p := pay(t, db, treasury, units, "asked", "mined")
	if _, err := db.Exec(t.Context(), servedSQL, p.Call, uuid.Must(uuid.NewV7()), life, provider, block); err != nil {
		t.Fatal(err)
	}
}

// sellerAt is an account that is paid to an address.
func sellerAt(t *testing.T, db *pgxpool.Pool, address common.Address) uuid.UUID {
	t.Helper()
	id := uuid.Must(uuid.NewV7())
	if _, err := db.Exec(t.Context(), `INSERT INTO accounts (id, wallet) VALUES ($1, $2)`, id, address[:]); err != nil {
		t.Fatal(err)
	}
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		_, err := payout.Store{}.SetAddress(t.Context(), tx, id, network.ID, address, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A nonces node has seen every authorization used that has left.
type nonces struct{ left bool }

func (n nonces) Used(_ context.Context, _, _ common.Address, of []common.Hash) ([]bool, error) {
	used := make([]bool, len(of))
	for i := range used {
		used[i] = n.left
	}
	return used, nil
}

// What providers have earned is owed until it has arrived. What the chain took back is owed by nobody, and of what came in at a block or after it a balance of
// that block may know nothing.
func TestLiabilities_WhatProvidersHaveEarnedIsOwedUntilItHasArrived(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	mine, provider := common.Address{0xaa}, sellerAt(t, db, common.Address{0xcd})
	earn(t, db, provider, mine, 1, "final", 99)
	earn(t, db, provider, mine, 2, "final", 100)
	earn(t, db, provider, mine, 4, "mined", 101)
	earn(t, db, provider, mine, 8, "lost", 50)
	pay(t, db, mine, 16, "asked", "mined") // of block 1
	wantOwed := func(when string, block uint64, want string) delivery.Liability {
		t.Helper()
		all, err := delivery.LiabilitiesOf(t.Context(), db, network.ID, block)
		if err != nil {
			t.Fatal(err)
		}
		owed := delivery.OwedBy(all, network.ID, usdc, mine)
		if owed.Owed().String() != want {
			t.Errorf("%s, below block %d: %s is owed (%+v), want %s", when, block, owed.Owed(), owed, want)
		}
		return owed
	}
	for block, want := range map[uint64]string{99: "16", 100: "17", 101: "19", 102: "23", math.MaxUint64: "23"} {
		wantOwed("nothing is paid", block, want)
	}
	if err := (ledger.Store{}).Fold(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	wantOwed("folded", 101, "19")

	purse := payout.Purse{Account: provider, Network: network.ID, Asset: usdc, Treasury: mine}
	made, err := payout.Store{}.Make(t.Context(), db, purse, 1, money.FromUnits(1), nil, "a test")
	if err != nil || made.Amount.String() != "3" {
		t.Fatalf("made a payout of %s, %v; want 3", made.Amount, err)
	}
	wantOwed("in a payout", math.MaxUint64, "23")
	if _, err := db.Exec(t.Context(), `UPDATE payouts SET state = 'sent', signed_at = market_now()`); err != nil {
		t.Fatal(err)
	}
	owed := wantOwed("sent", math.MaxUint64, "23")
	holds := delivery.Purse{Network: network.ID, Asset: usdc, Treasury: mine, Holds: money.FromUnits(20), Block: math.MaxUint64}
	for left, want := range map[bool]bool{true: false, false: true} {
		if _, short, err := delivery.Short(t.Context(), db, nonces{left}, holds, owed); err != nil || short != want {
			t.Errorf("it has left: %v; the treasury is short: %v, %v; want %v", left, short, err, want)
		}
	}
	const confirmedSQL = `UPDATE payouts SET state = 'confirmed', transaction = nonce, log_index = 0, block_number = 110, confirmed_at = market_now()`
	if _, err := db.Exec(t.Context(), confirmedSQL); err != nil {
		t.Fatal(err)
	}
	wantOwed("it has arrived", math.MaxUint64, "20")
}

// Of what came in at a block or after it a balance of that block may know nothing.
func TestLiabilitiesOf_CountsWhatCameInBelowABlockOnOneNetwork(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	mine := common.Address{0xaa}
	oweRefund(t, db, mine, 8, "owed", "")
	for units, block := range map[uint64]int{1: 99, 2: 100, 4: 101} {
		p := pay(t, db, mine, units, "asked", "mined")
		if _, err := db.Exec(t.Context(), `UPDATE calls SET block_number = $2 WHERE id = $1`, p.Call, block); err != nil {
			t.Fatal(err)
		}
	}
	for block, want := range map[uint64]string{0: "0", 1: "0", 2: "8", 99: "8", 100: "9", 101: "11", 102: "15", math.MaxUint64: "15"} {
		owed, err := delivery.LiabilitiesOf(t.Context(), db, network.ID, block)
		if err != nil {
			t.Fatal(err)
		}
		if got := delivery.OwedBy(owed, network.ID, usdc, mine).Owed().String(); got != want {
			t.Errorf("below block %d: %s is owed, want %s", block, got, want)
		}
	}
	if owed, err := delivery.LiabilitiesOf(t.Context(), db, "eip155:2", math.MaxUint64); err != nil || len(owed) != 0 {
		t.Errorf("another network: %v, %v, want nothing", owed, err)
	}
}

const jobSQL = `
INSERT INTO river_job (state, attempt, max_attempts, args, kind, finalized_at, attempted_at, errors)
VALUES ($1::river_job_state, 1, 1, '{}', $2, now() - $3::interval, now(), ARRAY[jsonb_build_object('error', 'connection refused')])`

func ended(t *testing.T, db *pgxpool.Pool, state, kind string, ago time.Duration) {
	t.Helper()
	if _, err := db.Exec(t.Context(), jobSQL, state, kind, ago); err != nil {
		t.Fatal(err)
	}
}

func TestJobFacts_CountFromTheFirstThatWasGivenUpAfterTheLastThatEndedWell(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, ago := range []time.Duration{30 * time.Minute, 7 * time.Minute, 6 * time.Minute, time.Minute} {
		ended(t, db, "discarded", "mail", ago)
	}
	ended(t, db, "completed", "mail", 10*time.Minute)
	ended(t, db, "discarded", "letters", time.Hour) // those that ended well since are deleted by now
	ended(t, db, "discarded", "well", 7*time.Minute)
	ended(t, db, "completed", "well", time.Minute)
	ended(t, db, "completed", "refunds_due", 2*time.Minute)
	facts, err := jobFacts(t.Context(), db, []string{"refunds_due"}, []string{"letters"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]jobFact{}
	for _, f := range facts {
		for _, d := range []*time.Duration{&f.failing, &f.done, &f.given} {
			*d = d.Round(time.Minute)
		}
		got[f.kind] = f
	}
	for kind, want := range map[string]jobFact{
		"mail":        {kind: "mail", failing: 7 * time.Minute, done: 10 * time.Minute, given: time.Minute, why: "connection refused"},
		"letters":     {kind: "letters", failing: 0, done: 0, given: time.Hour, why: "connection refused"},
		"well":        {kind: "well", failing: 0, done: time.Minute, given: 7 * time.Minute, why: "connection refused"},
		"refunds_due": {kind: "refunds_due", periodic: true, failing: 0, done: 2 * time.Minute, given: 0},
	} {
		if got[kind] != want {
			t.Errorf("%s: %+v, want %+v", kind, got[kind], want)
		}
	}
}

// The market's time is nobody's to the queue: a shift of it makes no job late.
func TestWatch_AJobThatIsGivenUpIsToldAndOverWhenOneEndsWell(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pgtest.Shift(t, db, 30*24*time.Hour)
	deep := func(fleet ...*member) {
		t.Helper()
		for _, m := range fleet {
			if err := m.LookDeep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	change := func(c *Config) { c.Periodic, c.RowsTell = []string{"refunds_due"}, []string{"refund"} }
	one, two := newMember(t, db, change), newMember(t, db, change)
	ended(t, db, "completed", "refunds_due", time.Second)
	ended(t, db, "discarded", "refund", time.Hour)
	ended(t, db, "discarded", "refund", 10*time.Minute)
	deep(one, two)
	wantNotices(t, "only what rows tell of was given up", db, "job_discarded", 0, 0, one, two)
	ended(t, db, "discarded", "mail", 6*time.Minute)
	deep(one, two)
	deep(one, two)
	wantNotices(t, "one was given up and none ended well", db, "job_discarded", 1, 1, one, two)
	ended(t, db, "completed", "mail", 0)
	deep(one, two)
	wantNotices(t, "one ended well", db, "job_discarded", 0, 2, one, two)
}

// While the database is away no job can run, and nobody can look: what was late by that has run again by the time it would be told.
func TestWatch_AfterADatabaseOutageAPeriodicJobHasFiveMinutesToRun(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	m := newMember(t, db, func(c *Config) { c.Periodic = []string{"refunds_due"} })
	deep := func() {
		t.Helper()
		if err := m.LookDeep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.jobsSeen = time.Now().Add(-time.Hour)
	ended(t, db, "completed", "refunds_due", jobPatience+time.Minute)
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.LookDeep(away); err == nil {
		t.Fatal("it could look without a database")
	}
	deep()
	wantNotices(t, "the database is back", db, notify.JobDiscarded, 0, 0, m)
	m.jobsSeen = m.jobsSeen.Add(-jobPatience)
	deep()
	wantNotices(t, "five minutes later", db, notify.JobDiscarded, 1, 1, m)
}
