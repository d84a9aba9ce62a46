-- +goose Up
-- What we owe a caller: the whole of one settled payment, to the address that paid, from the treasury that received it.
CREATE TABLE refunds (
	call_id       uuid PRIMARY KEY REFERENCES calls (id),
	network       text NOT NULL,
	asset         bytea NOT NULL CONSTRAINT refunds_asset_bytes CHECK (length(asset) = 20),
	payer         bytea NOT NULL CONSTRAINT refunds_payer_bytes CHECK (length(payer) = 20),
	amount        numeric(78, 0) NOT NULL CONSTRAINT refunds_amount_positive CHECK (amount > 0),
	authorizer    bytea NOT NULL CONSTRAINT refunds_authorizer_bytes CHECK (length(authorizer) = 20),
	nonce         bytea NOT NULL CONSTRAINT refunds_nonce_bytes CHECK (length(nonce) = 32),
	payment_nonce bytea NOT NULL CONSTRAINT refunds_payment_nonce_bytes CHECK (length(payment_nonce) = 32),
	payment_transaction bytea NOT NULL CONSTRAINT refunds_payment_transaction_bytes CHECK (length(payment_transaction) = 32),
	state         text NOT NULL DEFAULT 'owed'
	              CONSTRAINT refunds_state_known CHECK (state IN ('owed', 'sent', 'confirmed', 'parked', 'void')),
	owed_at       timestamptz NOT NULL DEFAULT market_now(),
	next_at       timestamptz NOT NULL DEFAULT market_now(),
	attempts      int NOT NULL DEFAULT 0,
	why           text NOT NULL DEFAULT '',
	transaction   bytea CONSTRAINT refunds_transaction_bytes CHECK (length(transaction) = 32),
	log_index     int,
	block_number  bigint,
	confirmed_at  timestamptz,
	CONSTRAINT refunds_authorization_unique UNIQUE (network, asset, authorizer, nonce),
	CONSTRAINT refunds_transfer_unique UNIQUE (network, transaction, log_index),
	CONSTRAINT refunds_confirmed_is_proved CHECK
		((state = 'confirmed') = (transaction IS NOT NULL) AND num_nulls(transaction, log_index, block_number, confirmed_at) IN (0, 4))
);
CREATE INDEX refunds_due ON refunds (next_at) WHERE state NOT IN ('confirmed', 'void');

-- Every authorization that we signed for a refund, written before it left. Another one may be signed only after all of these have lapsed.
CREATE TABLE refund_signatures (
	call_id      uuid NOT NULL REFERENCES refunds (call_id),
	valid_before bigint NOT NULL,
	signature    bytea NOT NULL CONSTRAINT refund_signatures_bytes CHECK (length(signature) = 65),
	signed_at    timestamptz NOT NULL DEFAULT market_now(),
	PRIMARY KEY (call_id, valid_before)
);
