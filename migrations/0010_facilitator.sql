-- +goose Up
-- How many requests each API key of the facilitator has made in its newest minute: one row a key, shared by all replicas.
CREATE TABLE facilitator_rates (
	key_name     text PRIMARY KEY,
	window_start timestamptz NOT NULL,
	requests     integer NOT NULL CONSTRAINT facilitator_rates_requests_range CHECK (requests >= 1)
);
