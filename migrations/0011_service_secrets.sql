-- +goose Up
-- What a service wants to see in every request of ours, such as its API key. Only ever written and sent: the values are encrypted, and the key
-- is not in the database. A value opens for this service, this name and the host that it was set for, and for no other.
CREATE TABLE service_headers (
	service_id uuid NOT NULL REFERENCES services (id),
	name       text NOT NULL CONSTRAINT service_headers_name_form CHECK (name ~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]{1,64}$'),
	sealed     bytea NOT NULL,
	set_at     timestamptz NOT NULL DEFAULT market_now(),
	PRIMARY KEY (service_id, name)
);

-- What shows a service that it is us who ask. The newest whose time has come is sent; one that is younger waits, so that the provider can
-- learn to take both before the change.
CREATE TABLE service_secrets (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	service_id uuid NOT NULL REFERENCES services (id),
	sealed     bytea NOT NULL,
	since      timestamptz NOT NULL
);
CREATE INDEX service_secrets_by_service ON service_secrets (service_id, since DESC, id DESC);

CREATE TRIGGER service_headers_changed AFTER INSERT OR UPDATE OR DELETE ON service_headers
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('catalog');
CREATE TRIGGER service_secrets_changed AFTER INSERT OR UPDATE OR DELETE ON service_secrets
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('catalog');
