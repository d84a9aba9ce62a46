-- +goose Up
-- What one caller gets of an endpoint's trial calls of a day. NULL: as many as there are; a column of its own, so that it follows trial_calls_per_day
-- when that changes, and code that does not know it leaves it alone.
ALTER TABLE endpoints
	ADD COLUMN trial_calls_per_caller int CONSTRAINT endpoints_trial_caller_range CHECK (trial_calls_per_caller BETWEEN 1 AND 1000000);

-- What callers took of a day's trial calls: by the network of their address (/24 or /48), and by the wallet that they signed in with. Each trial call
-- that is taken has one row at most in either, so trial_days bounds them both. allowed is what the caller had when its last one was taken: the
-- constraint is what undoes the whole statement where two calls race for a caller's last one. The index is for forgetting past days.
CREATE TABLE trial_networks (
	endpoint_id uuid NOT NULL REFERENCES endpoints (id),
	day         date NOT NULL,
	network     cidr NOT NULL,
	used        int NOT NULL CONSTRAINT trial_networks_not_negative CHECK (used >= 0),
	allowed     int NOT NULL,
	PRIMARY KEY (endpoint_id, day, network),
	CONSTRAINT trial_networks_within CHECK (used <= allowed)
);
CREATE INDEX trial_networks_by_day ON trial_networks (day);

CREATE TABLE trial_wallets (
	endpoint_id uuid NOT NULL REFERENCES endpoints (id),
	day         date NOT NULL,
	wallet      bytea NOT NULL CONSTRAINT trial_wallets_address CHECK (octet_length(wallet) = 20),
	used        int NOT NULL CONSTRAINT trial_wallets_not_negative CHECK (used >= 0),
	allowed     int NOT NULL,
	PRIMARY KEY (endpoint_id, day, wallet),
	CONSTRAINT trial_wallets_within CHECK (used <= allowed)
);
CREATE INDEX trial_wallets_by_day ON trial_wallets (day);

CREATE INDEX trial_days_by_day ON trial_days (day);

-- The keys of our own scanners are known to every process by memory, so all are told of one that is made or ends, and of an admin who is none any more.
CREATE TRIGGER api_keys_scanners AFTER INSERT OR UPDATE OF revoked_at ON api_keys
	FOR EACH ROW WHEN (NEW.scopes = ARRAY['scanner']) EXECUTE FUNCTION notify_changed('accounts');
CREATE TRIGGER admins_changed AFTER INSERT OR UPDATE ON admins
	FOR EACH ROW EXECUTE FUNCTION notify_changed('accounts');
