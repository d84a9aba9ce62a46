-- +goose Up
-- How many requests each API key of the facilitator has made in its newest minute: one row a key, shared by all replicas.
CREATE TABLE facilitator_rates (
	key_name     text PRIMARY KEY,
	window_start timestamptz NOT NULL,
	requests     integer NOT NULL CONSTRAINT facilitator_rates_requests_range CHECK (requests >= 1)
);

-- How often the facilitator has said yes to each payment. Sellers' servers verify once for each sale, so a payment that was verified twice was
-- shown to two sales, and settles for one of them. A row that has settled stays for ever: the chain tells of a transfer for ever, too.
CREATE TABLE facilitator_sales (
	network    text NOT NULL,
	asset      bytea NOT NULL CONSTRAINT facilitator_sales_asset_bytes CHECK (length(asset) = 20),
	payer      bytea NOT NULL CONSTRAINT facilitator_sales_payer_bytes CHECK (length(payer) = 20),
	nonce      bytea NOT NULL CONSTRAINT facilitator_sales_nonce_bytes CHECK (length(nonce) = 32),
	verified   integer NOT NULL CONSTRAINT facilitator_sales_verified_range CHECK (verified >= 0),
	settled    integer NOT NULL CONSTRAINT facilitator_sales_settled_range CHECK (settled >= 0),
	touched_at timestamptz NOT NULL DEFAULT market_now(),
	PRIMARY KEY (network, asset, payer, nonce)
);
CREATE INDEX facilitator_sales_by_age ON facilitator_sales (touched_at) WHERE settled = 0;

-- Payments whose transaction was mined and moved nothing: each cost gas, and gets the same no again. They stay for ever.
CREATE TABLE facilitator_undone (
	network     text NOT NULL,
	asset       bytea NOT NULL CONSTRAINT facilitator_undone_asset_bytes CHECK (length(asset) = 20),
	payer       bytea NOT NULL CONSTRAINT facilitator_undone_payer_bytes CHECK (length(payer) = 20),
	nonce       bytea NOT NULL CONSTRAINT facilitator_undone_nonce_bytes CHECK (length(nonce) = 32),
	transaction bytea NOT NULL CONSTRAINT facilitator_undone_transaction_bytes CHECK (length(transaction) = 32),
	code        text NOT NULL CONSTRAINT facilitator_undone_code_filled CHECK (code <> ''),
	by_payer    boolean NOT NULL, -- the code of the payer's account would not have it on the chain
	undone_at   timestamptz NOT NULL DEFAULT market_now(),
	PRIMARY KEY (network, asset, payer, nonce)
);
CREATE INDEX facilitator_undone_by_payer ON facilitator_undone (payer, undone_at) WHERE by_payer;
