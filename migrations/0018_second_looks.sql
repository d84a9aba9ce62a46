-- +goose Up
-- What is off the shelf for a while can still get the strikes that delist it, by the calls that were under way. It is delisted then, in the
-- transaction that records the last of them, and comes back only as what was delisted for its strikes does.
INSERT INTO service_moves (from_state, cause, actor, to_state) VALUES
	('suspended', 'strikes', 'recorder', 'delisted'),
	('held',      'strikes', 'recorder', 'delisted');

-- Since when the nonce of a payment that was believed looks used by something else: an index of logs may lag behind the state, so that one look is
-- not enough to write money off.
ALTER TABLE calls ADD COLUMN used_since timestamptz;
