-- +goose Up
-- What was answered to a served call, so that whoever proves to be its caller can fetch it again. Headers and body are encrypted; the
-- key is not in the database. A row goes when its time is over.
CREATE TABLE answers (
	call_id    uuid PRIMARY KEY REFERENCES calls (id),
	status     int NOT NULL CONSTRAINT answers_status_range CHECK (status BETWEEN 200 AND 599),
	sealed     bytea NOT NULL,
	-- The name that the caller gave its payment, where it gave one: it is on no chain, so it tells the caller from an onlooker.
	identifier text CONSTRAINT answers_identifier_form CHECK (identifier ~ '^[A-Za-z0-9_-]{16,128}$'),
	source     inet NOT NULL,
	stored_at  timestamptz NOT NULL DEFAULT market_now(),
	expires_at timestamptz NOT NULL,
	CONSTRAINT answers_expire_later CHECK (expires_at > stored_at)
);
-- Ciphertext does not shrink, so nobody should try.
ALTER TABLE answers ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE INDEX answers_by_expiry ON answers (expires_at);

-- Sign-ins that were used. A row is needed for as long as the sign-in would be accepted.
CREATE TABLE siwx_nonces (
	address    bytea NOT NULL CONSTRAINT siwx_nonces_address_bytes CHECK (length(address) = 20),
	nonce      text NOT NULL,
	until      timestamptz NOT NULL,
	PRIMARY KEY (address, nonce)
);
CREATE INDEX siwx_nonces_by_end ON siwx_nonces (until);
