-- +goose Up
-- Every change of a service's state has a row that says from where, to where, why and by whom. The database writes it from what the change itself
-- says, so nobody can forget it: neither a statement of ours, nor a program from before this migration that still runs, nor a person at a prompt.
ALTER TABLE services
	DROP CONSTRAINT services_state_known,
	ADD CONSTRAINT services_state_known CHECK (state IN ('listed', 'delisted', 'suspended', 'held', 'retired')),
	ADD COLUMN state_cause    text NOT NULL DEFAULT 'created',
	ADD COLUMN state_actor    text NOT NULL DEFAULT 'admin',
	ADD COLUMN state_by       text NOT NULL DEFAULT 'admin token',
	-- Counts the edits of a service and its endpoints, so that of two editors the second one learns of the first.
	ADD COLUMN revision       bigint NOT NULL DEFAULT 1,
	ADD COLUMN base_url_since timestamptz NOT NULL DEFAULT market_now();

UPDATE services
   SET base_url_since = created_at,
       state_cause = CASE state WHEN 'delisted' THEN 'strikes' WHEN 'retired' THEN 'withdrawn' ELSE 'created' END,
       state_actor = CASE state WHEN 'delisted' THEN 'recorder' ELSE 'admin' END,
       state_by    = CASE state WHEN 'delisted' THEN 'recorder' ELSE 'admin token' END;

-- What is not here cannot happen. It is the table of catalog.Moves; '' is the state of a service that is not there yet.
CREATE TABLE service_moves (
	from_state text NOT NULL,
	cause      text NOT NULL,
	actor      text NOT NULL,
	to_state   text NOT NULL,
	PRIMARY KEY (from_state, cause, actor, to_state)
);
INSERT INTO service_moves (from_state, cause, actor, to_state) VALUES
	('',          'created',    'owner',    'listed'),
	('',          'created',    'admin',    'listed'),
	('',          'created',    'system',   'listed'),
	('listed',    'strikes',    'recorder', 'delisted'),
	-- What is off the shelf for a while can still get the strikes that delist it, by the calls that were under way.
	('suspended', 'strikes',    'recorder', 'delisted'),
	('held',      'strikes',    'recorder', 'delisted'),
	('listed',    'suspension', 'admin',    'suspended'),
	('held',      'suspension', 'admin',    'suspended'),
	('listed',    'review',     'admin',    'held'),
	('listed',    'review',     'recorder', 'held'),
	('listed',    'review',     'system',   'held'),
	('suspended', 'relisting',  'admin',    'listed'),
	('held',      'relisting',  'admin',    'listed'),
	('listed',    'withdrawn',  'owner',    'retired'),
	('listed',    'withdrawn',  'admin',    'retired'),
	('delisted',  'withdrawn',  'owner',    'retired'),
	('delisted',  'withdrawn',  'admin',    'retired'),
	('suspended', 'withdrawn',  'owner',    'retired'),
	('suspended', 'withdrawn',  'admin',    'retired'),
	('held',      'withdrawn',  'owner',    'retired'),
	('held',      'withdrawn',  'admin',    'retired');

CREATE TABLE service_events (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	service_id uuid NOT NULL REFERENCES services (id),
	at         timestamptz NOT NULL,
	from_state text NOT NULL,
	cause      text NOT NULL,
	actor      text NOT NULL,
	to_state   text NOT NULL,
	detail     text NOT NULL CONSTRAINT service_events_reason_given CHECK (detail <> ''),
	by         text NOT NULL CONSTRAINT service_events_author_given CHECK (by <> ''),
	CONSTRAINT service_events_move_known FOREIGN KEY (from_state, cause, actor, to_state) REFERENCES service_moves
);
CREATE INDEX service_events_by_service ON service_events (service_id, id DESC);

INSERT INTO service_events (service_id, at, from_state, cause, actor, to_state, detail, by)
SELECT id, created_at, '', 'created', 'admin', 'listed', 'created', 'admin token' FROM services ORDER BY id;
INSERT INTO service_events (service_id, at, from_state, cause, actor, to_state, detail, by)
SELECT id, state_since, 'listed', state_cause, state_actor, state, coalesce(nullif(state_reason, ''), 'no reason was kept'), state_by
  FROM services WHERE state <> 'listed' ORDER BY id;

-- A cause leads to one state, so a state that changes and keeps its cause was written by somebody who names none: a program from before this
-- migration, which knows two such changes, or a person. The two are taken for that program's: by its words nobody can tell a person who types one.
-- Every other change has to name its cause.
-- +goose StatementBegin
CREATE FUNCTION service_state_named() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	IF NEW.state = OLD.state THEN
		IF (NEW.state_cause, NEW.state_actor, NEW.state_by, NEW.state_reason, NEW.state_since)
		   IS DISTINCT FROM (OLD.state_cause, OLD.state_actor, OLD.state_by, OLD.state_reason, OLD.state_since) THEN
			RAISE EXCEPTION 'the reason of a service''s state changes with the state only' USING ERRCODE = 'check_violation', CONSTRAINT = 'services_state_named';
		END IF;
	ELSIF NEW.state_cause = OLD.state_cause THEN
		CASE NEW.state
			WHEN 'delisted' THEN NEW.state_cause := 'strikes';   NEW.state_actor := 'recorder'; NEW.state_by := 'recorder';
			WHEN 'retired'  THEN NEW.state_cause := 'withdrawn'; NEW.state_actor := 'admin';    NEW.state_by := 'admin token';
			ELSE RAISE EXCEPTION 'a service that becomes % needs a cause', NEW.state USING ERRCODE = 'check_violation', CONSTRAINT = 'services_state_named';
		END CASE;
	END IF;
	RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER services_state_named BEFORE UPDATE OF state, state_cause, state_actor, state_by, state_reason, state_since ON services
	FOR EACH ROW EXECUTE FUNCTION service_state_named();

-- +goose StatementBegin
CREATE FUNCTION keep_service_event() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
	before text := '';
BEGIN
	IF TG_OP = 'UPDATE' THEN
		IF NEW.state = OLD.state THEN
			RETURN NULL;
		END IF;
		before := OLD.state;
	END IF;
	INSERT INTO service_events (service_id, at, from_state, cause, actor, to_state, detail, by)
	VALUES (NEW.id, NEW.state_since, before, NEW.state_cause, NEW.state_actor, NEW.state, NEW.state_reason, NEW.state_by);
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER services_state_kept AFTER INSERT OR UPDATE OF state ON services
	FOR EACH ROW EXECUTE FUNCTION keep_service_event();

-- Who changed what of a listing, and what it was before: endpoint_id is null for the service itself. before is null for what was added, after for
-- what was withdrawn. Neither holds a secret.
CREATE TABLE service_revisions (
	service_id  uuid NOT NULL REFERENCES services (id),
	revision    bigint NOT NULL,
	endpoint_id uuid REFERENCES endpoints (id),
	at          timestamptz NOT NULL DEFAULT market_now(),
	actor       text NOT NULL,
	by          text NOT NULL,
	before      jsonb,
	after       jsonb,
	PRIMARY KEY (service_id, revision),
	CONSTRAINT service_revisions_say_something CHECK (before IS DISTINCT FROM after)
);

-- Both are history: they are added to, and never changed.
-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger
LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION '% is history and is only added to', TG_TABLE_NAME USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME; END $$;
-- +goose StatementEnd
CREATE TRIGGER service_events_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON service_events
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER service_revisions_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON service_revisions
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
