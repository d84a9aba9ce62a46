-- +goose Up
-- What a service did with the calls that reached it from outside, newest first, with everything that its record is counted from: so a record is
-- read from this index alone, and rows that somebody made by being refused cannot push it out of reach.
CREATE INDEX deliveries_of_record ON deliveries (service_id, recorded_at DESC)
	INCLUDE (outcome, party, latency_us)
	WHERE origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused');
-- A payer knows the nonce that it signed, and finds by it what became of its payment.
CREATE INDEX calls_by_nonce ON calls (nonce);
