-- +goose Up
-- A key's signature has 65 bytes; a contract wallet's has up to as many as the door reads. Whoever sends a payment again is known by these bytes.
ALTER TABLE calls ADD CONSTRAINT calls_signature_bytes CHECK (length(signature) BETWEEN 65 AND 4096);
-- Payments that cost us a transaction and did not pay: few, and looked at before each claim.
CREATE INDEX calls_undone_by_payer ON calls (payer, created_at)
	WHERE state IN ('rejected', 'refused') AND transaction IS NULL AND sent_transaction IS NOT NULL;
-- Payments that may have moved their money, or may do so yet: what a payer holds has to cover them as well.
CREATE INDEX calls_unproved_by_payer ON calls (payer, created_at) WHERE state IN ('settling', 'unknown');
