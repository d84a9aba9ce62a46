-- +goose Up
-- What is sent with a probe by POST. json keeps the text: what a service gets is what was checked.
ALTER TABLE services ADD COLUMN probe_body json;
