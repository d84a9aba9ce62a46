-- +goose Up
-- What the operator has stopped by hand. One row a switch that was ever set, with who set it last and why; what it was before is in the audit.
CREATE TABLE switches (
	kind    text NOT NULL CONSTRAINT switches_kind_known CHECK (kind IN ('stop_402', 'stop_payouts', 'suspend_strikes')),
	subject text NOT NULL, -- the network of a stop_402; empty of the others, which there is one of
	is_on   boolean NOT NULL,
	reason  text NOT NULL CONSTRAINT switches_reason_given CHECK (reason <> ''),
	by      text NOT NULL CONSTRAINT switches_author_given CHECK (by <> ''),
	since   timestamptz NOT NULL DEFAULT market_now(),
	PRIMARY KEY (kind, subject),
	CONSTRAINT switches_subject_of_its_kind CHECK ((kind = 'stop_402') = (subject <> ''))
);
-- Every process keeps in memory what is on.
CREATE TRIGGER switches_changed AFTER INSERT OR UPDATE OR DELETE ON switches
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('switches');

-- Strikes were suspended when it was recorded: it is measured as it came, and it opened no strike, started no cooldown and holds nobody, then or later.
-- It is found by the time it was recorded at, so that the index that records are read from does not have to grow by what is nearly always false.
ALTER TABLE deliveries ADD COLUMN suspended boolean NOT NULL DEFAULT false;
CREATE INDEX deliveries_suspended ON deliveries (service_id, recorded_at) WHERE suspended;
DROP TRIGGER deliveries_kept ON deliveries;
CREATE TRIGGER deliveries_kept BEFORE UPDATE OF id, call_id, trial, service_id, endpoint_id, outcome, reason, origin, asked, asked_at, upstream_status,
	latency_us, method, path, source, payer, recorded_at, replica, suspended OR DELETE OR TRUNCATE ON deliveries
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
