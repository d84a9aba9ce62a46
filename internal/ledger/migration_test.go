package ledger_test

import (
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"market/internal/ledger"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
	"market/migrations"
)

// Rows as programs from before the books have written them: payments of an owner's service and of nobody's, in every place that money can be.
const beforeSQL = `
WITH account AS (
	INSERT INTO accounts (id, wallet) VALUES ('00000000-0000-0000-0000-0000000000aa', decode(repeat('aa', 20), 'hex')) RETURNING id
), service AS (
	INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses, owner_id)
	SELECT gen_random_uuid(), slug, slug, 'https://x.example', 'GET', '/', '200', owner
	  FROM (SELECT 'owned' AS slug, id AS owner FROM account UNION ALL SELECT 'nobodys', NULL) AS two
	RETURNING id
), endpoint AS (
	INSERT INTO endpoints (id, service_id, method, path, mime_type, timeout_ms, max_response_bytes)
	SELECT gen_random_uuid(), id, 'GET', '/', 'text/plain', 1000, 1000 FROM service RETURNING id, service_id
), price AS (
	INSERT INTO endpoint_prices (endpoint_id, price_usd) SELECT id, 1 FROM endpoint RETURNING revision, endpoint_id
), place (n, payment, outcome, refund) AS (VALUES
	(1, NULL, NULL, NULL), (2, 'mined', NULL, NULL), (3, 'final', 'served', NULL), (4, 'final', 'failed', 'owed'),
	(5, 'final', 'failed', 'confirmed'), (6, 'lost', 'served', NULL), (7, 'lost', 'failed', 'void')
), call AS (
	INSERT INTO calls (id, network, asset, payer, nonce, amount, treasury, valid_after, valid_before, signature, service_id, endpoint_id, price_revision,
		fee_bps, fingerprint, method, path, source, origin, state, owner, lease_until, transaction, log_index, block_number, block_hash, payment_state, asked_at)
	SELECT gen_random_uuid(), 'eip155:84532', decode('a5' || repeat('00', 19), 'hex'), decode(repeat('ca', 20), 'hex'), sha256((n || e.id::text)::bytea), 10001,
	       decode('1e' || repeat('00', 19), 'hex'), 0, 1, decode(repeat('01', 65), 'hex'), e.service_id, e.id, price.revision, 250, decode(repeat('00', 32), 'hex'), 'GET', '/', '192.0.2.1',
	       'external', coalesce(outcome, CASE WHEN payment IS NULL THEN 'settling' ELSE 'asked' END), gen_random_uuid(), market_now(), hash, log, block, hash,
	       payment, market_now()
	  FROM endpoint e JOIN price ON price.endpoint_id = e.id, place, LATERAL (SELECT
		CASE WHEN payment IS NOT NULL THEN sha256((n || e.id::text)::bytea) END, CASE WHEN payment IS NOT NULL THEN 3 END,
		CASE WHEN payment IS NOT NULL THEN 100 END) AS proof (hash, log, block)
	RETURNING id, nonce, network, asset, payer, amount, treasury, transaction, service_id, endpoint_id
), known AS (
	SELECT call.*, place.outcome, place.refund FROM call JOIN place ON call.nonce = sha256((place.n || call.endpoint_id::text)::bytea)
), delivered AS (
	INSERT INTO deliveries (id, call_id, trial, service_id, endpoint_id, outcome, reason, party, origin, asked, method, path, source)
	SELECT gen_random_uuid(), id, false, service_id, endpoint_id, outcome, 'ok', 'service', 'external', false, 'GET', '/', '192.0.2.1'
	  FROM known WHERE outcome IS NOT NULL
)
INSERT INTO refunds (call_id, network, asset, payer, amount, authorizer, nonce, payment_nonce, payment_transaction, state,
	transaction, log_index, block_number, confirmed_at)
SELECT id, network, asset, payer, amount, treasury, nonce, nonce, transaction, refund,
       CASE refund WHEN 'confirmed' THEN nonce END, CASE refund WHEN 'confirmed' THEN 1 END, CASE refund WHEN 'confirmed' THEN 200 END,
       CASE refund WHEN 'confirmed' THEN market_now() END
  FROM known WHERE refund IS NOT NULL`

func TestMigration_PostsWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	db, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	provider, err := goose.NewProvider(goose.DialectPostgres, stdlib.OpenDBFromPool(db), migrations.FS,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 30); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), beforeSQL); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s := shelf{db: db}
	s.sound(t)
	got := s.trial(t)
	for account, want := range map[ledger.Account]string{ // of two services each
		ledger.Treasury: "60006", ledger.Pending: "-20002", ledger.RefundsPayable: "-20002", ledger.Losses: "20002", ledger.Provider: "-39004", ledger.Fees: "-1000",
	} {
		if got[account] != want {
			t.Errorf("%s holds %s, want %s", account, got[account], want)
		}
	}
	all, err := books.Owner(t.Context(), db, [16]byte{15: 0xaa})
	if err != nil || len(all) != 1 || all[0].Amount.String() != "-19502" {
		t.Errorf("the owner's shares are %+v, %v", all, err)
	}
}
