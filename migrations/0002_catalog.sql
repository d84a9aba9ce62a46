-- +goose Up
CREATE TABLE services (
	id             uuid PRIMARY KEY,
	slug           text NOT NULL CONSTRAINT services_slug_unique UNIQUE
	               CONSTRAINT services_slug_form CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$'),
	name           text NOT NULL,
	description    text NOT NULL DEFAULT '',
	tags           text[] NOT NULL DEFAULT '{}',
	base_url       text NOT NULL,
	probe_method   text NOT NULL,
	probe_path     text NOT NULL,
	probe_statuses text NOT NULL,
	state          text NOT NULL DEFAULT 'listed'
	               CONSTRAINT services_state_known CHECK (state IN ('listed', 'delisted', 'retired')),
	state_reason   text NOT NULL DEFAULT 'created',
	state_since    timestamptz NOT NULL DEFAULT market_now(),
	created_at     timestamptz NOT NULL DEFAULT market_now()
);

CREATE TABLE endpoints (
	id                  uuid PRIMARY KEY,
	service_id          uuid NOT NULL REFERENCES services (id),
	method              text NOT NULL,
	path                text NOT NULL,
	description         text NOT NULL DEFAULT '',
	mime_type           text NOT NULL,
	input_schema        jsonb,
	input_example       jsonb,
	output_schema       jsonb,
	output_example      jsonb,
	served_statuses     int[] NOT NULL DEFAULT '{}',
	timeout_ms          int NOT NULL CONSTRAINT endpoints_timeout_range CHECK (timeout_ms BETWEEN 100 AND 120000),
	max_response_bytes  int NOT NULL CONSTRAINT endpoints_response_range CHECK (max_response_bytes BETWEEN 1 AND 1048576),
	trial_calls_per_day int NOT NULL DEFAULT 0 CONSTRAINT endpoints_trial_range CHECK (trial_calls_per_day BETWEEN 0 AND 1000000),
	retired_at          timestamptz,
	created_at          timestamptz NOT NULL DEFAULT market_now()
);
CREATE UNIQUE INDEX endpoints_route_unique ON endpoints (service_id, method, path) WHERE retired_at IS NULL;

-- A price is never changed, only followed by another; the revision that a payment matched is pinned on its call.
CREATE TABLE endpoint_prices (
	revision    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	endpoint_id uuid NOT NULL REFERENCES endpoints (id),
	price_usd   numeric(38, 18) NOT NULL CONSTRAINT endpoint_prices_positive CHECK (price_usd > 0),
	since       timestamptz NOT NULL DEFAULT market_now()
);
CREATE INDEX endpoint_prices_by_endpoint ON endpoint_prices (endpoint_id, since DESC);

CREATE TRIGGER services_changed AFTER INSERT OR UPDATE OR DELETE ON services
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('catalog');
CREATE TRIGGER endpoints_changed AFTER INSERT OR UPDATE OR DELETE ON endpoints
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('catalog');
CREATE TRIGGER endpoint_prices_changed AFTER INSERT OR UPDATE OR DELETE ON endpoint_prices
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('catalog');
