-- +goose Up
-- What a notice says, in three parts; those of before have their text alone. A trouble that is over is calm for a while before its notice is settled:
-- one that comes back meanwhile is the same, and nobody is told again.
ALTER TABLE notices
	ADD COLUMN what       text NOT NULL DEFAULT '',
	ADD COLUMN effect     text NOT NULL DEFAULT '',
	ADD COLUMN look       text NOT NULL DEFAULT '',
	ADD COLUMN calm_since timestamptz;
CREATE INDEX notices_calm ON notices (calm_since) WHERE settled_at IS NULL AND calm_since IS NOT NULL;

-- What of a notice is to be sent, and what became of it: that there is a trouble, and that it is over. Written in the transaction that raises or settles
-- the notice, so that neither is without the other.
CREATE TABLE notice_messages (
	notice_id    uuid NOT NULL REFERENCES notices (id),
	phase        text NOT NULL CONSTRAINT notice_messages_phase_known CHECK (phase IN ('raised', 'recovered')),
	made_at      timestamptz NOT NULL DEFAULT market_now(),
	next_at      timestamptz NOT NULL DEFAULT market_now(), -- when it is tried next
	leased_until timestamptz,                               -- somebody is sending it; null: nobody is
	attempts     int NOT NULL DEFAULT 0 CONSTRAINT notice_messages_attempts_counted CHECK (attempts >= 0), -- that went wrong
	last_error   text NOT NULL DEFAULT '',                  -- what came of the last one, channel by channel
	channel      text NOT NULL DEFAULT '',                  -- that took it
	sent_at      timestamptz,
	given_up_at  timestamptz,
	PRIMARY KEY (notice_id, phase),
	CONSTRAINT notice_messages_sent_by_a_channel CHECK ((sent_at IS NULL) = (channel = '')),
	CONSTRAINT notice_messages_end_once CHECK (sent_at IS NULL OR given_up_at IS NULL)
);
CREATE INDEX notice_messages_due ON notice_messages (next_at) WHERE sent_at IS NULL AND given_up_at IS NULL;

-- How a channel does: what went wrong with it in a row. A success ends the row of failures.
CREATE TABLE notice_channels (
	channel       text PRIMARY KEY,
	failures      int NOT NULL DEFAULT 0,
	failing_since timestamptz,
	last_error    text NOT NULL DEFAULT '',
	CONSTRAINT notice_channels_failures_whole CHECK (failures >= 0 AND (failures = 0) = (failing_since IS NULL))
);
