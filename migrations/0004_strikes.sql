-- +goose Up
-- The counter is these rows: open strikes inside the window. There is no number to drift.
CREATE TABLE strikes (
	id               uuid PRIMARY KEY,
	service_id       uuid NOT NULL REFERENCES services (id),
	opened_at        timestamptz NOT NULL,
	folds_until      timestamptz NOT NULL,
	last_evidence_at timestamptz NOT NULL,
	state            text NOT NULL DEFAULT 'open' CONSTRAINT strikes_state_known CHECK (state IN ('open', 'cleared')),
	cleared_at       timestamptz,
	cleared_by       uuid REFERENCES deliveries (id),
	CONSTRAINT strikes_cleared_whole CHECK
		((state = 'cleared') = (cleared_at IS NOT NULL) AND (cleared_at IS NULL) = (cleared_by IS NULL))
);
CREATE INDEX strikes_latest ON strikes (service_id, opened_at DESC, id DESC);
CREATE INDEX strikes_open ON strikes (service_id) WHERE state = 'open';

CREATE TABLE strike_deliveries (
	strike_id   uuid NOT NULL REFERENCES strikes (id),
	delivery_id uuid NOT NULL PRIMARY KEY REFERENCES deliveries (id)
);
CREATE INDEX strike_deliveries_by_strike ON strike_deliveries (strike_id);

CREATE TABLE cooldowns (
	service_id uuid PRIMARY KEY REFERENCES services (id),
	until      timestamptz NOT NULL,
	started_by uuid NOT NULL REFERENCES deliveries (id)
);
CREATE TRIGGER cooldowns_changed AFTER INSERT OR UPDATE OR DELETE ON cooldowns
	FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('cooldowns');
