-- +goose Up
-- Whether nearly all traffic is our own, or comes from nobody knows whom: an operator is told. What comes from outside, as it should, is in the index of
-- the minute, so a delivery is in one of the two, and a call that counts writes no more than before. (Unattributed traffic is in both.)
CREATE INDEX deliveries_not_external ON deliveries (origin, recorded_at DESC) INCLUDE (asked, source) WHERE origin <> 'external';

-- A trial costs nothing, so the network of its address is what is refused: before each trial it is asked whether enough from there went wrong. Few do.
CREATE INDEX deliveries_failed_trials ON deliveries
	(endpoint_id, network(set_masklen(source, CASE family(source) WHEN 4 THEN 24 ELSE 48 END)), recorded_at)
	WHERE trial AND outcome IN ('failed', 'refused') AND asked;

-- When a service was last asked whether it lives though nobody wanted it, and since when it has not answered. That is no strike: nobody was charged. A
-- service that has not answered for long is held for a review, so that what is dead leaves the shelf.
CREATE TABLE service_probes (
	service_id       uuid PRIMARY KEY REFERENCES services (id),
	checked_at       timestamptz NOT NULL,
	probe_id         uuid, -- what it was asked by, and where: another base URL or probe begins afresh. Null until it was asked
	answered_at      timestamptz,
	unanswered       int NOT NULL DEFAULT 0, -- times in a row
	unanswered_since timestamptz,
	CONSTRAINT service_probes_silence_whole CHECK (unanswered >= 0 AND (unanswered = 0) = (unanswered_since IS NULL))
);
