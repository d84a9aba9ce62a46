-- +goose Up
-- What a service did with the calls that reached it from outside, newest first, with everything that its record is counted from: so a record is
-- read from this index alone, and rows that somebody made by being refused cannot push it out of reach. A record is made of paid calls: a trial
-- costs nothing, so anybody could make as many as the record is to look like. Trials are counted apart, and by rows of their own, so that they
-- push no paid call out of what is counted.
CREATE INDEX deliveries_of_paid_record ON deliveries (service_id, trial, recorded_at DESC)
	INCLUDE (outcome, party, latency_us, payer)
	WHERE origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused');
-- A payer knows the nonce that it signed, and finds by it what became of its payment.
CREATE INDEX calls_by_nonce ON calls (nonce);
-- A payment that is not proved is found by the transaction that it was sent in, or that a facilitator named.
CREATE INDEX calls_by_sent_transaction ON calls (sent_transaction) WHERE transaction IS NULL AND sent_transaction IS NOT NULL;
