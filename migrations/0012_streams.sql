-- +goose Up
-- An endpoint may be sold as a stream: its answer goes to the caller while it comes and is not kept. It may then take longer and be larger
-- than an answer that is buffered and stored, and has a limit on the pauses between its pieces.
ALTER TABLE endpoints
	ADD COLUMN stream boolean NOT NULL DEFAULT false,
	ADD COLUMN idle_timeout_ms int NOT NULL DEFAULT 30000
		CONSTRAINT endpoints_idle_range CHECK (idle_timeout_ms BETWEEN 100 AND 120000),
	DROP CONSTRAINT endpoints_timeout_range,
	DROP CONSTRAINT endpoints_response_range,
	ADD CONSTRAINT endpoints_timeout_range CHECK (timeout_ms BETWEEN 100 AND CASE WHEN stream THEN 600000 ELSE 120000 END),
	ADD CONSTRAINT endpoints_response_range CHECK (max_response_bytes BETWEEN 1 AND CASE WHEN stream THEN 67108864 ELSE 1048576 END);
