-- +goose Up
-- One row a claimed payment: the claim, the call's state and the proof of its settlement. The unique identity is the replay guard, so
-- this table is not partitioned and a row may go only after its authorization is proved lapsed.
CREATE TABLE calls (
	id             uuid PRIMARY KEY,
	network        text NOT NULL,
	asset          bytea NOT NULL CONSTRAINT calls_asset_bytes CHECK (length(asset) = 20),
	payer          bytea NOT NULL CONSTRAINT calls_payer_bytes CHECK (length(payer) = 20),
	nonce          bytea NOT NULL CONSTRAINT calls_nonce_bytes CHECK (length(nonce) = 32),
	amount         numeric(78, 0) NOT NULL CONSTRAINT calls_amount_positive CHECK (amount > 0),
	treasury       bytea NOT NULL CONSTRAINT calls_treasury_bytes CHECK (length(treasury) = 20),
	valid_after    bigint NOT NULL,
	valid_before   bigint NOT NULL,
	signature      bytea NOT NULL,
	service_id     uuid NOT NULL REFERENCES services (id),
	endpoint_id    uuid NOT NULL REFERENCES endpoints (id),
	price_revision bigint NOT NULL REFERENCES endpoint_prices (revision),
	fee_bps        int NOT NULL CONSTRAINT calls_fee_range CHECK (fee_bps BETWEEN 0 AND 10000),
	fingerprint    bytea NOT NULL CONSTRAINT calls_fingerprint_bytes CHECK (length(fingerprint) = 32),
	payment_identifier text CONSTRAINT calls_identifier_form CHECK (payment_identifier ~ '^[A-Za-z0-9_-]{16,128}$'),
	method         text NOT NULL,
	path           text NOT NULL,
	source         inet NOT NULL,
	origin         text NOT NULL
	               CONSTRAINT calls_origin_known CHECK (origin IN ('external', 'own', 'provider', 'unattributed')),
	state          text NOT NULL CONSTRAINT calls_state_known CHECK (state IN
	               ('settling', 'released', 'unknown', 'rejected', 'expired', 'settled', 'asked',
	                'served', 'refused', 'failed', 'cooldown_refused')),
	state_since    timestamptz NOT NULL DEFAULT market_now(),
	owner          uuid NOT NULL,
	lease_until    timestamptz NOT NULL,
	why            text NOT NULL DEFAULT '',
	-- The transaction that carries the authorization, as far as one was sent; it proves nothing.
	sent_transaction bytea CONSTRAINT calls_sent_transaction_bytes CHECK (length(sent_transaction) = 32),
	transaction    bytea CONSTRAINT calls_transaction_bytes CHECK (length(transaction) = 32),
	log_index      int,
	block_number   bigint,
	block_hash     bytea CONSTRAINT calls_block_hash_bytes CHECK (length(block_hash) = 32),
	asked_at       timestamptz,
	-- The payment's own life on the chain: set when it is proved, and followed until it is final or lost.
	payment_state  text CONSTRAINT calls_payment_state_known CHECK (payment_state IN ('sent', 'mined', 'final', 'lost')),
	-- The caller was told no before the transfer was found: such a call is refunded, never served.
	late           boolean NOT NULL DEFAULT false,
	-- The transfer is older than the restore of a backup, and the claim is not: what was done for it before is not known here. A person decides.
	review         boolean NOT NULL DEFAULT false,
	claimed_block  bigint NOT NULL DEFAULT 0, -- the head at the claim; the transfer is looked for from a little before it
	look_at        timestamptz NOT NULL DEFAULT market_now(), -- when the sweeper looks at the call, or at its payment, next
	looks          int NOT NULL DEFAULT 0,
	created_at     timestamptz NOT NULL DEFAULT market_now(),
	CONSTRAINT calls_payment_unique UNIQUE (network, asset, payer, nonce),
	-- A transfer pays once.
	CONSTRAINT calls_transfer_unique UNIQUE (network, transaction, log_index),
	CONSTRAINT calls_proof_whole CHECK (num_nulls(transaction, log_index, block_number, block_hash) IN (0, 4)),
	-- A call that was refused may have been refused without its money: rejected, or lapsed.
	CONSTRAINT calls_settled_is_proved CHECK
		(state NOT IN ('settled', 'asked', 'served', 'failed', 'cooldown_refused') OR transaction IS NOT NULL),
	CONSTRAINT calls_proof_has_a_life CHECK ((transaction IS NULL) = (payment_state IS NULL)),
	CONSTRAINT calls_asked_at_when_asked CHECK (state NOT IN ('asked', 'served') OR asked_at IS NOT NULL)
);
-- A name that a payer gives a payment names one. A released payment was not used, and leaves its name to another.
CREATE UNIQUE INDEX calls_identifier_unique ON calls (payer, payment_identifier)
	WHERE payment_identifier IS NOT NULL AND state <> 'released';
CREATE INDEX calls_open ON calls (look_at) WHERE state IN ('settling', 'unknown', 'rejected', 'expired', 'settled', 'asked');
CREATE INDEX calls_unfinal ON calls (look_at) WHERE payment_state IN ('sent', 'mined');
CREATE INDEX calls_by_payer ON calls (payer, created_at);

-- How a call ended. Append-only, one row a call.
CREATE TABLE deliveries (
	id              uuid PRIMARY KEY,
	call_id         uuid NOT NULL CONSTRAINT deliveries_one_per_call UNIQUE,
	trial           boolean NOT NULL,
	service_id      uuid NOT NULL REFERENCES services (id),
	endpoint_id     uuid NOT NULL REFERENCES endpoints (id),
	outcome         text NOT NULL
	                CONSTRAINT deliveries_outcome_known CHECK (outcome IN ('served', 'refused', 'failed', 'cooldown_refused')),
	reason          text NOT NULL CONSTRAINT deliveries_reason_given CHECK (reason <> ''),
	party           text NOT NULL CONSTRAINT deliveries_party_known CHECK (party IN ('service', 'caller', 'platform', 'rail')),
	origin          text NOT NULL
	                CONSTRAINT deliveries_origin_known CHECK (origin IN ('external', 'own', 'provider', 'unattributed')),
	asked           boolean NOT NULL,
	asked_at        timestamptz,
	upstream_status int,
	latency_us      bigint,
	method          text NOT NULL,
	path            text NOT NULL,
	source          inet NOT NULL,
	payer           bytea,
	detail          text NOT NULL DEFAULT '',
	recorded_at     timestamptz NOT NULL DEFAULT market_now(),
	CONSTRAINT deliveries_asked_has_time CHECK (asked = (asked_at IS NOT NULL))
);
CREATE INDEX deliveries_by_service ON deliveries (service_id, recorded_at DESC);
CREATE INDEX deliveries_by_payer ON deliveries (payer, endpoint_id, recorded_at) WHERE payer IS NOT NULL;
CREATE INDEX deliveries_refunded_by_payer ON deliveries (payer, endpoint_id, recorded_at)
	WHERE payer IS NOT NULL AND outcome IN ('failed', 'refused');

-- Every refusal that touched no money is counted here, by minute, endpoint, reason and address prefix (/24 or /48). Those that tell the
-- caller something about its input or the service have a row in deliveries too, as long as the prefix stays under 60 a minute.
CREATE TABLE refusal_counts (
	minute      timestamptz NOT NULL,
	endpoint_id uuid NOT NULL REFERENCES endpoints (id),
	reason      text NOT NULL,
	prefix      cidr NOT NULL,
	count       bigint NOT NULL CONSTRAINT refusal_counts_positive CHECK (count > 0),
	PRIMARY KEY (minute, endpoint_id, reason, prefix)
);

CREATE TABLE trial_days (
	endpoint_id uuid NOT NULL REFERENCES endpoints (id),
	day         date NOT NULL,
	used        int NOT NULL CONSTRAINT trial_days_positive CHECK (used > 0),
	PRIMARY KEY (endpoint_id, day)
);
