-- +goose Up
-- How often an admin had a refund tried again that could not be sent. A worker that was at it meanwhile finds another number than it read, and does not
-- write over that.
ALTER TABLE refunds ADD COLUMN retries int NOT NULL DEFAULT 0 CONSTRAINT refunds_retries_not_negative CHECK (retries >= 0);
CREATE INDEX refunds_by_state ON refunds (state, call_id);
-- What a wallet got back, the newest first.
CREATE INDEX refunds_by_payer ON refunds (payer, owed_at);
-- What waits for a person after a restore.
CREATE INDEX calls_in_review ON calls (id) WHERE review;
