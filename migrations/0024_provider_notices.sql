-- +goose Up
-- Where the provider of a service wants to be told what becomes of it; null: nowhere. It is for the owner of the listing and for admins.
ALTER TABLE services
	ADD COLUMN notice_email   text CONSTRAINT services_notice_email_given   CHECK (notice_email <> ''),
	ADD COLUMN notice_webhook text CONSTRAINT services_notice_webhook_given CHECK (notice_webhook <> '');

-- What shows a provider's webhook that it is us who tell. The one without an end is the current one; the one before it signs beside it until its end,
-- so that the provider can change over.
CREATE TABLE service_notice_secrets (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	service_id  uuid NOT NULL REFERENCES services (id),
	sealed      bytea NOT NULL,
	made_at     timestamptz NOT NULL DEFAULT market_now(),
	signs_until timestamptz
);
CREATE UNIQUE INDEX service_notice_secrets_one_current ON service_notice_secrets (service_id) WHERE signs_until IS NULL;
CREATE INDEX service_notice_secrets_by_service ON service_notice_secrets (service_id);

-- What a provider is to know, written with what it tells of. It is kept as it was told.
CREATE TABLE provider_notices (
	id         uuid PRIMARY KEY, -- the same in every message of it, so that its receiver can drop a second one
	service_id uuid NOT NULL REFERENCES services (id),
	kind       text NOT NULL CONSTRAINT provider_notices_kind_given CHECK (kind <> ''),
	at         timestamptz NOT NULL DEFAULT market_now(),
	facts      jsonb NOT NULL
);
CREATE INDEX provider_notices_by_service ON provider_notices (service_id, at DESC, id DESC);
CREATE TRIGGER provider_notices_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON provider_notices
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- One row for each channel that the listing named when the notice was written: what became of telling it there.
CREATE TABLE provider_deliveries (
	notice_id        uuid NOT NULL REFERENCES provider_notices (id),
	service_id       uuid NOT NULL REFERENCES services (id), -- of the notice
	channel          text NOT NULL CONSTRAINT provider_deliveries_channel_known CHECK (channel IN ('email', 'webhook')),
	attempts         int NOT NULL DEFAULT 0,
	attempts_before  int NOT NULL DEFAULT 0, -- of them, those before it was last sent again by hand: the waits begin anew
	next_at          timestamptz NOT NULL DEFAULT market_now(), -- while an attempt runs: when it counts as dead
	waits_for_source boolean NOT NULL DEFAULT false, -- put off because the source of the channel can not be asked, and due when it can
	sent_at          timestamptz,
	given_up_at      timestamptz,
	last_status      int, -- of the answer to the last attempt, where one came
	last_error       text NOT NULL DEFAULT '', -- of the last attempt that failed
	PRIMARY KEY (notice_id, channel),
	CONSTRAINT provider_deliveries_one_end CHECK (sent_at IS NULL OR given_up_at IS NULL),
	CONSTRAINT provider_deliveries_attempts_counted CHECK (attempts_before BETWEEN 0 AND attempts)
);
CREATE INDEX provider_deliveries_due ON provider_deliveries (next_at) WHERE sent_at IS NULL AND given_up_at IS NULL;
CREATE INDEX provider_deliveries_open ON provider_deliveries (service_id, channel) WHERE sent_at IS NULL AND given_up_at IS NULL;
