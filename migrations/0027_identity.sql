-- +goose Up
-- Who sells here. An account is a wallet that signed in once; it has no name and no password.
CREATE TABLE accounts (
	id           uuid PRIMARY KEY,
	wallet       bytea NOT NULL CONSTRAINT accounts_wallet_unique UNIQUE CONSTRAINT accounts_wallet_bytes CHECK (length(wallet) = 20),
	plan         text NOT NULL DEFAULT '' CONSTRAINT accounts_plan_short CHECK (length(plan) <= 64), -- empty: the first plan of the table
	created_at   timestamptz NOT NULL DEFAULT market_now(),
	last_seen_at timestamptz NOT NULL DEFAULT market_now()
);

-- From where an account was used: the latest moment of each address. A call from one of them is the provider's own.
CREATE TABLE account_addresses (
	account_id uuid NOT NULL REFERENCES accounts (id),
	address    inet NOT NULL,
	seen_at    timestamptz NOT NULL DEFAULT market_now(),
	PRIMARY KEY (account_id, address)
);
CREATE INDEX account_addresses_by_age ON account_addresses (seen_at);

-- What a wallet got for its signature. Of a token only the digest is kept: whoever reads the table can sign in as nobody.
CREATE TABLE sessions (
	token_hash bytea PRIMARY KEY CONSTRAINT sessions_hash_bytes CHECK (length(token_hash) = 32),
	account_id uuid NOT NULL REFERENCES accounts (id),
	created_at timestamptz NOT NULL DEFAULT market_now(),
	expires_at timestamptz NOT NULL,
	ended_at   timestamptz,
	CONSTRAINT sessions_expire_later CHECK (expires_at > created_at)
);
CREATE INDEX sessions_by_account ON sessions (account_id, created_at);
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE api_keys (
	id           uuid PRIMARY KEY,
	account_id   uuid NOT NULL REFERENCES accounts (id),
	name         text NOT NULL CONSTRAINT api_keys_name_length CHECK (length(name) BETWEEN 1 AND 80),
	token_hash   bytea NOT NULL CONSTRAINT api_keys_hash_unique UNIQUE CONSTRAINT api_keys_hash_bytes CHECK (length(token_hash) = 32),
	hint         text NOT NULL CONSTRAINT api_keys_hint_length CHECK (length(hint) = 4), -- the end of the token, for the eye
	scopes       text[] NOT NULL CONSTRAINT api_keys_scopes_given CHECK (cardinality(scopes) BETWEEN 1 AND 16),
	created_at   timestamptz NOT NULL DEFAULT market_now(),
	expires_at   timestamptz, -- null: it is good until it is revoked
	last_used_at timestamptz,
	revoked_at   timestamptz
);
CREATE INDEX api_keys_by_account ON api_keys (account_id, created_at DESC);

-- Sign-ins that were used: the nonce is ours and good once. One that was only given out is not kept, so nobody can fill this by asking. network is
-- that of whoever signed in, as call.Network cuts it: so many sign-ins of one network are taken while their rows are here.
CREATE TABLE sign_ins (
	nonce   text PRIMARY KEY CONSTRAINT sign_ins_nonce_short CHECK (length(nonce) <= 128),
	wallet  bytea NOT NULL CONSTRAINT sign_ins_wallet_bytes CHECK (length(wallet) = 20),
	network cidr NOT NULL,
	at      timestamptz NOT NULL DEFAULT market_now()
);
CREATE INDEX sign_ins_by_network ON sign_ins (network, at);
CREATE INDEX sign_ins_by_age ON sign_ins (at);

-- Wallets that are admins. The row is read at each request that needs the role, so whoever loses it has lost it with the next request. A wallet that
-- was an admin keeps its row: one that an admin has demoted does not come back by the configuration.
CREATE TABLE admins (
	wallet     bytea PRIMARY KEY CONSTRAINT admins_wallet_bytes CHECK (length(wallet) = 20),
	source     text NOT NULL CONSTRAINT admins_source_known CHECK (source IN ('config', 'admin')), -- who granted it last
	granted_by text NOT NULL CONSTRAINT admins_grantor_given CHECK (granted_by <> ''),
	granted_at timestamptz NOT NULL DEFAULT market_now(),
	revoked_by text CONSTRAINT admins_revoker_given CHECK (revoked_by <> ''),
	revoked_at timestamptz,
	CONSTRAINT admins_revoked_by_somebody CHECK ((revoked_at IS NULL) = (revoked_by IS NULL))
);

-- Whose a service is; null: the operator's own, listed with the admin token. It is set when the service is listed and does not change.
ALTER TABLE services ADD COLUMN owner_id uuid REFERENCES accounts (id);
CREATE INDEX services_by_owner ON services (owner_id, id) WHERE owner_id IS NOT NULL;

-- Every process keeps the owners of services in memory. Rows that nobody changed tell nobody.
CREATE TRIGGER accounts_plan_changed AFTER UPDATE OF plan ON accounts
	FOR EACH ROW WHEN (OLD.plan IS DISTINCT FROM NEW.plan) EXECUTE FUNCTION notify_changed('accounts');
-- Anybody can have an account and use it from one address after the other: only where a new one is an owner's does the memory change. What grows old is
-- forgotten with the next reload, which needs no notification.
-- +goose StatementBegin
CREATE FUNCTION notify_owner_seen() RETURNS trigger
LANGUAGE plpgsql
AS $$ BEGIN
	IF EXISTS (SELECT 1 FROM services WHERE owner_id = NEW.account_id AND state <> 'retired') THEN
		PERFORM pg_notify('accounts', '');
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER account_addresses_seen AFTER INSERT ON account_addresses
	FOR EACH ROW EXECUTE FUNCTION notify_owner_seen();
CREATE TRIGGER services_owned AFTER INSERT ON services
	FOR EACH ROW WHEN (NEW.owner_id IS NOT NULL) EXECUTE FUNCTION notify_changed('accounts');
