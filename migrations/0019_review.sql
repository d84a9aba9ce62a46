-- +goose Up
-- What a person, or the program for an outage of its own, decides about strikes and about what followed from them. A strike that is voided was none;
-- one that is archived was counted, and a relisting has settled it. Neither counts, and both keep their evidence. What was cleared stays known to
-- have been cleared.
ALTER TABLE strikes
	DROP CONSTRAINT strikes_state_known,
	ADD CONSTRAINT strikes_state_known CHECK (state IN ('open', 'cleared', 'voided', 'archived')),
	DROP CONSTRAINT strikes_cleared_whole,
	ADD COLUMN closed_at timestamptz, -- when it was voided or archived; by whom and why is in the audit
	ADD CONSTRAINT strikes_cleared_whole CHECK ((cleared_at IS NULL) = (cleared_by IS NULL)
		AND (state <> 'open' OR cleared_at IS NULL) AND (state <> 'cleared' OR cleared_at IS NOT NULL)),
	ADD CONSTRAINT strikes_closed_whole CHECK ((state IN ('voided', 'archived')) = (closed_at IS NOT NULL));

INSERT INTO service_moves (from_state, cause, actor, to_state) VALUES
	('delisted', 'relisting',      'admin',  'listed'),
	-- A strike that did not count takes back what followed from it. Each cause leads to one state, so there are three.
	('delisted', 'void',           'admin',  'listed'),
	('delisted', 'void',           'system', 'listed'),
	('held',     'void',           'admin',  'listed'),
	('held',     'void',           'system', 'listed'),
	('delisted', 'void_suspended', 'admin',  'suspended'),
	('delisted', 'void_suspended', 'system', 'suspended'),
	('delisted', 'void_held',      'admin',  'held'),
	('delisted', 'void_held',      'system', 'held');

-- Who decided what, why, and how it stood before and after. It is history: it is only added to.
CREATE TABLE audit (
	id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at           timestamptz NOT NULL DEFAULT market_now(),
	actor        text NOT NULL CONSTRAINT audit_actor_given CHECK (actor <> ''),
	by           text NOT NULL CONSTRAINT audit_author_given CHECK (by <> ''),
	action       text NOT NULL CONSTRAINT audit_action_given CHECK (action <> ''),
	subject_kind text NOT NULL CONSTRAINT audit_kind_given CHECK (subject_kind <> ''),
	subject      text NOT NULL CONSTRAINT audit_subject_given CHECK (subject <> ''),
	service_id   uuid REFERENCES services (id), -- whose history it belongs to; null where it is about no service
	reason       text NOT NULL CONSTRAINT audit_reason_given CHECK (reason <> ''),
	before       jsonb NOT NULL,
	after        jsonb NOT NULL
);
CREATE INDEX audit_by_service ON audit (service_id, id DESC);
CREATE INDEX audit_by_subject ON audit (subject_kind, subject, id DESC);
CREATE TRIGGER audit_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What the provider of a service says to a strike, or to its service being off the shelf. It is kept as it came; that it was answered, and by which
-- decision, is added.
CREATE TABLE appeals (
	id          uuid PRIMARY KEY,
	service_id  uuid NOT NULL REFERENCES services (id),
	strike_id   uuid REFERENCES strikes (id), -- null: it is about the service as a whole
	at          timestamptz NOT NULL DEFAULT market_now(),
	actor       text NOT NULL CONSTRAINT appeals_actor_given CHECK (actor <> ''),
	by          text NOT NULL CONSTRAINT appeals_author_given CHECK (by <> ''),
	text        text NOT NULL CONSTRAINT appeals_text_length CHECK (char_length(text) BETWEEN 1 AND 2000),
	answered_by bigint REFERENCES audit (id)
);
CREATE INDEX appeals_by_service ON appeals (service_id, id DESC);
CREATE INDEX appeals_by_strike ON appeals (strike_id) WHERE strike_id IS NOT NULL;
CREATE INDEX appeals_unanswered ON appeals (service_id) WHERE answered_by IS NULL;
CREATE TRIGGER appeals_kept BEFORE UPDATE OF id, service_id, strike_id, at, actor, by, text OR DELETE OR TRUNCATE ON appeals
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER appeals_answered_once BEFORE UPDATE OF answered_by ON appeals
	FOR EACH ROW WHEN (OLD.answered_by IS NOT NULL) EXECUTE FUNCTION refuse_change();
