-- +goose Up
-- Time that two replicas compare is the database's, and tests move it per database. statement_timestamp, because now() is fixed before
-- any lock wait and clock_timestamp() differs inside one statement.
CREATE TABLE market_clock (
	one   boolean PRIMARY KEY DEFAULT true CONSTRAINT market_clock_one_row CHECK (one),
	shift interval NOT NULL DEFAULT '0'
);
INSERT INTO market_clock DEFAULT VALUES;

-- +goose StatementBegin
CREATE FUNCTION market_now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
AS $$ SELECT statement_timestamp() + shift FROM market_clock $$;
-- +goose StatementEnd

-- Snapshots in process memory compare against market time too, so a shift has to reach them.
-- +goose StatementBegin
CREATE FUNCTION notify_changed() RETURNS trigger
LANGUAGE plpgsql
AS $$ BEGIN PERFORM pg_notify(TG_ARGV[0], ''); RETURN NULL; END $$;
-- +goose StatementEnd

CREATE TRIGGER market_clock_changed AFTER UPDATE ON market_clock
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('cooldowns');
CREATE TRIGGER market_clock_changed_for_prices AFTER UPDATE ON market_clock
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('catalog');

-- One row a process of the fleet. Leases and shares are compared with what these say.
CREATE TABLE replicas (
	id           uuid PRIMARY KEY,
	address      text NOT NULL,
	started_at   timestamptz NOT NULL,
	heartbeat_at timestamptz NOT NULL
);
