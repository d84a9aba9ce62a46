-- +goose Up
-- Which process walked the call; null where none of this version did: an older program, or whoever ended a call that nobody walked any more.
ALTER TABLE deliveries ADD COLUMN replica uuid;

-- What a strike is judged by is kept with it, as it was when the delivery was recorded. A program from before this migration leaves it out.
ALTER TABLE strike_deliveries
	ADD COLUMN error         text NOT NULL DEFAULT '', -- the kind of error in a few words of ours, such as "connect: refused"
	ADD COLUMN content_type  text NOT NULL DEFAULT '', -- as the service named it
	ADD COLUMN snippet       text NOT NULL DEFAULT '', -- how the answer's body begins, where that is text; without the listing's secrets
	ADD COLUMN body_bytes    bigint NOT NULL DEFAULT 0, -- of the answer's body, as far as it was read
	ADD COLUMN body_cut      boolean NOT NULL DEFAULT false, -- the body went on, or was to
	ADD COLUMN body_sha256   bytea, -- of the first 64 KiB of what was read; null where nothing was
	-- Was it us? How many other services answered calls from outside in the minute before, and how many of them failed one.
	ADD COLUMN others_asked  int,
	ADD COLUMN others_failed int,
	ADD CONSTRAINT strike_deliveries_snippet_short CHECK (length(snippet) <= 1024),
	ADD CONSTRAINT strike_deliveries_body_whole CHECK ((body_bytes > 0) = (body_sha256 IS NOT NULL) AND body_bytes >= 0),
	ADD CONSTRAINT strike_deliveries_sha256_bytes CHECK (length(body_sha256) = 32),
	ADD CONSTRAINT strike_deliveries_others_whole CHECK
		((others_asked IS NULL) = (others_failed IS NULL) AND others_failed BETWEEN 0 AND others_asked);

-- What the services did within the last minute or so, whichever they are.
CREATE INDEX deliveries_of_minute ON deliveries (recorded_at DESC) INCLUDE (service_id, outcome, reason, party, replica)
	WHERE asked AND origin IN ('external', 'unattributed');

-- A success that clears strikes is evidence, too.
CREATE INDEX strikes_cleared ON strikes (service_id, cleared_at DESC) WHERE state = 'cleared';

-- Each time strikes took a service off the shelf, with what they were counted by then: a review counts by that again.
CREATE TABLE delistings (
	id              uuid PRIMARY KEY,
	service_id      uuid NOT NULL REFERENCES services (id),
	at              timestamptz NOT NULL DEFAULT market_now(),
	kind            text NOT NULL CONSTRAINT delistings_kind_known CHECK (kind IN ('delisted', 'held')),
	from_state      text NOT NULL,
	strike_limit    int NOT NULL CONSTRAINT delistings_limit_positive CHECK (strike_limit > 0),
	strike_window   interval NOT NULL,
	sources_needed  int NOT NULL CONSTRAINT delistings_needs_positive CHECK (sources_needed > 0),
	strikes_open    int NOT NULL, -- in the window, with the deciding one
	sources_found   int NOT NULL, -- different networks (/24, /48) that their evidence came from
	deciding_strike uuid NOT NULL REFERENCES strikes (id),
	CONSTRAINT delistings_reached_the_limit CHECK (strikes_open >= strike_limit),
	CONSTRAINT delistings_held_for_sources CHECK ((kind = 'held') = (sources_found < sources_needed))
);
CREATE INDEX delistings_by_service ON delistings (service_id, at DESC);

-- Both are history: they are added to, and never changed.
CREATE TRIGGER delistings_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON delistings
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER strike_deliveries_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON strike_deliveries
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
