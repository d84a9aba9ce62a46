-- +goose Up
-- What a process sees that nobody runs into: networks that are not ready, an empty wallet, work that does not come round. It is the process's own word,
-- written by it alone and read by all, so that one that sees trouble is not contradicted by one that does not. Null: it has not said anything yet, or is
-- of a version that says nothing.
ALTER TABLE replicas
	ADD COLUMN report      jsonb,
	ADD COLUMN reported_at timestamptz,
	ADD CONSTRAINT replicas_report_dated CHECK ((report IS NULL) = (reported_at IS NULL));
