-- +goose Up
-- What was used of everything outside that can refuse us, one row a source and UTC day. Every reservation changes the row of today, so half of each page
-- is left free: a row that is changed stays on its page, and no index is touched.
CREATE TABLE source_days (
	source       text NOT NULL,
	day          date NOT NULL,
	used         bigint NOT NULL DEFAULT 0, -- units that were set aside, less what was given back
	denied       bigint NOT NULL DEFAULT 0, -- units that were asked for and not let through
	guarded      bigint,                    -- the cap that was reached: such a day counts at it, whatever was given back since. Null: none was
	exhausted_at timestamptz,               -- the source refused us on that day, first at: it says nothing about normal use. Null: it did not
	PRIMARY KEY (source, day),
	CONSTRAINT source_days_source_named CHECK (source <> ''),
	CONSTRAINT source_days_used_not_negative CHECK (used >= 0),
	CONSTRAINT source_days_denied_not_negative CHECK (denied >= 0),
	CONSTRAINT source_days_guarded_positive CHECK (guarded > 0)
) WITH (fillfactor = 50);

-- How each source stands, whatever the day: a balance that has run out is not there again at midnight.
CREATE TABLE source_state (
	source           text PRIMARY KEY,
	exhausted_at     timestamptz, -- they stopped us: when a request last met or tested that. Null: they do not
	retry_at         timestamptz, -- the end of the window, from which one request may test it
	why              text,        -- of the last outage, until it is over
	said             text,        -- what its last refusal was known by, in words of ours
	next_request_at  timestamptz, -- pacing: they asked us to wait until then
	out_since        timestamptz, -- of the outage, which lasts until it has worked again and has not refused for a while: people were told. Null: there is none
	refused_at       timestamptz, -- they refused last
	cleared_at       timestamptz, -- when the request was reserved by whose success they were last found to work: refusals of requests from before are old news
	last_success_at  timestamptz, -- within some seconds
	guard_reached_at timestamptz, -- we stopped: people were told. Null: units are let through
	guard_cap        bigint,      -- at which we did
	CONSTRAINT source_state_source_named CHECK (source <> ''),
	CONSTRAINT source_state_window_whole CHECK ((exhausted_at IS NULL) = (retry_at IS NULL)),
	CONSTRAINT source_state_why_known CHECK (why IN ('exhausted', 'denied')),
	CONSTRAINT source_state_exhausted_has_why CHECK (exhausted_at IS NULL OR why IS NOT NULL),
	CONSTRAINT source_state_guard_whole CHECK ((guard_reached_at IS NULL) = (guard_cap IS NULL))
) WITH (fillfactor = 50);

-- Every process keeps in memory what is out. A trigger of rows, because the statement of each reservation could change one and seldom does; and not of
-- successes, which change nothing that is kept.
CREATE TRIGGER source_state_made AFTER INSERT ON source_state
	FOR EACH ROW EXECUTE FUNCTION notify_changed('sources');
CREATE TRIGGER source_state_changed AFTER UPDATE ON source_state
	FOR EACH ROW
	WHEN ((OLD.exhausted_at, OLD.retry_at, OLD.why, OLD.next_request_at, OLD.out_since, OLD.refused_at, OLD.guard_reached_at, OLD.guard_cap)
		IS DISTINCT FROM (NEW.exhausted_at, NEW.retry_at, NEW.why, NEW.next_request_at, NEW.out_since, NEW.refused_at, NEW.guard_reached_at, NEW.guard_cap))
	EXECUTE FUNCTION notify_changed('sources');

-- What is kept in memory is compared with market time too.
CREATE TRIGGER market_clock_changed_for_sources AFTER UPDATE ON market_clock
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('sources');
