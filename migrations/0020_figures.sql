-- +goose Up
-- What holds a service for review is counted from the same rows as its record, and its figures by endpoint and reason: the index of the record has
-- these columns, too, so that all of them are read from it alone.
DROP INDEX deliveries_of_paid_record;
CREATE INDEX deliveries_of_paid_record ON deliveries (service_id, trial, recorded_at DESC)
	INCLUDE (outcome, party, latency_us, payer, endpoint_id, reason, asked)
	WHERE origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused');
-- Every delivery that is in no record: the market's own calls, the provider's, and requests that were turned down before the service was asked. A
-- delivery is in one of the two indexes, so a call that counts writes no more than before. Each origin is read by itself, so that what strangers
-- make by being refused pushes nothing else out of what is counted.
CREATE INDEX deliveries_beside_record ON deliveries (service_id, trial, origin, recorded_at DESC)
	INCLUDE (outcome, party, latency_us, endpoint_id, reason)
	WHERE origin NOT IN ('external', 'unattributed') OR (NOT asked AND outcome = 'refused');
