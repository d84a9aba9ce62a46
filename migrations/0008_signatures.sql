-- +goose Up
-- A key's signature has 65 bytes; a contract wallet's has up to as many as the door reads. Whoever sends a payment again is known by these bytes.
ALTER TABLE calls ADD CONSTRAINT calls_signature_bytes CHECK (length(signature) BETWEEN 65 AND 4096);
