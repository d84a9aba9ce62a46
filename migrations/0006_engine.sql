-- +goose Up
-- The next transaction nonce of each gas key, handed out by the database: replicas that share a key never collide.
CREATE TABLE gas_accounts (
	network    text NOT NULL,
	address    bytea NOT NULL CONSTRAINT gas_accounts_address_bytes CHECK (length(address) = 20),
	next_nonce bigint NOT NULL CONSTRAINT gas_accounts_nonce_range CHECK (next_nonce >= 0),
	PRIMARY KEY (network, address)
);

-- Signed bytes are here before they are anywhere else.
CREATE TABLE engine_transactions (
	network       text NOT NULL,
	sender        bytea NOT NULL,
	nonce         bigint NOT NULL,
	hash          bytea NOT NULL CONSTRAINT engine_transactions_hash_bytes CHECK (length(hash) = 32),
	raw           bytea NOT NULL,
	asset         bytea NOT NULL,
	authorizer    bytea NOT NULL,
	authorization_nonce bytea NOT NULL,
	created_at    timestamptz NOT NULL DEFAULT market_now(),
	mined_block   bigint,
	PRIMARY KEY (network, sender, nonce),
	CONSTRAINT engine_transactions_hash_unique UNIQUE (network, hash),
	FOREIGN KEY (network, sender) REFERENCES gas_accounts (network, address)
);
CREATE INDEX engine_transactions_open ON engine_transactions (network, sender, nonce) WHERE mined_block IS NULL;
CREATE INDEX engine_transactions_by_authorization ON engine_transactions (network, asset, authorizer, authorization_nonce);
