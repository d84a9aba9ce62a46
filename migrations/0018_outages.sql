-- +goose Up
-- When failures were taken for an outage of our own: of the whole fleet, or of one replica. While a row has no end, and for what it reaches back to,
-- no failure is a service's doing.
CREATE TABLE outages (
	id              uuid PRIMARY KEY,
	replica         uuid, -- null: the fleet
	cause           text NOT NULL CONSTRAINT outages_cause_known CHECK (cause IN ('canaries', 'services')),
	began_at        timestamptz NOT NULL,
	reaches_back_to timestamptz NOT NULL,
	-- When what it was known by was so last. That moves on after the end, where failures of services alone had kept it up for as long as they may.
	held_at         timestamptz NOT NULL,
	ended_at        timestamptz,
	-- What the services did in the minute that made it known, of those that had served somebody the day before.
	asked           int NOT NULL,
	failed          int NOT NULL,
	providers       int NOT NULL,
	settled_at      timestamptz, -- when everything that it excuses was found; null: not yet
	CONSTRAINT outages_reach_back CHECK (reaches_back_to <= began_at),
	CONSTRAINT outages_held_since_they_began CHECK (held_at >= began_at),
	CONSTRAINT outages_settle_after_their_end CHECK (settled_at IS NULL OR ended_at IS NOT NULL),
	CONSTRAINT outages_counted CHECK (providers BETWEEN 0 AND failed AND failed <= asked)
);
-- However many replicas see it at once, it is one.
CREATE UNIQUE INDEX outages_one_holds ON outages (coalesce(replica, '00000000-0000-0000-0000-000000000000')) WHERE ended_at IS NULL;
CREATE INDEX outages_by_end ON outages (ended_at);
CREATE INDEX outages_by_beginning ON outages (began_at DESC, id DESC);
CREATE INDEX outages_unsettled ON outages (began_at) WHERE settled_at IS NULL;

-- The outage that a failure was taken for, whether that was known when it was recorded or found afterwards. It is the one thing of a delivery that
-- changes, with its party and its detail; all else is history. The trigger is asked once a statement, and by no insertion.
ALTER TABLE deliveries
	ADD COLUMN excused_by uuid REFERENCES outages (id),
	ADD CONSTRAINT deliveries_excused_are_ours CHECK (excused_by IS NULL OR party = 'platform');
CREATE TRIGGER deliveries_kept BEFORE UPDATE OF id, call_id, trial, service_id, endpoint_id, outcome, reason, origin, asked, asked_at, upstream_status,
	latency_us, method, path, source, payer, recorded_at, replica OR DELETE OR TRUNCATE ON deliveries
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- Failures are few: one look at those of the last minute tells that there is no outage.
CREATE INDEX deliveries_failed_of_minute ON deliveries (recorded_at DESC) INCLUDE (service_id, reason, replica)
	WHERE outcome = 'failed' AND asked AND origin IN ('external', 'unattributed');

-- What the operator has to know. One row of a kind and a subject is open at a time, so that nobody is told twice of one trouble.
CREATE TABLE notices (
	id         uuid PRIMARY KEY,
	kind       text NOT NULL CONSTRAINT notices_kind_given CHECK (kind <> ''),
	subject    text NOT NULL, -- of the kind; empty where there is one of that kind only
	text       text NOT NULL CONSTRAINT notices_text_given CHECK (text <> ''),
	raised_at  timestamptz NOT NULL DEFAULT market_now(),
	settled_at timestamptz
);
CREATE UNIQUE INDEX notices_one_open ON notices (kind, subject) WHERE settled_at IS NULL;
CREATE INDEX notices_by_age ON notices (raised_at DESC, id DESC);
