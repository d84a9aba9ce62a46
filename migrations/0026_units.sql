-- +goose Up
-- A refund waits for what sends it, and keeps what was set aside for it.
ALTER TABLE refunds
	-- The source (a facilitator, a chain node) that takes no work before next_at; empty: the refund waits for nothing but its next step. It is emptied
	-- by whoever takes the refund up again.
	ADD COLUMN waits_for text NOT NULL DEFAULT '',
	-- The source with which a unit was set aside for this refund when its payment was made: it is counted already. Empty: none, or used by now.
	ADD COLUMN unit_of text NOT NULL DEFAULT '';

-- Whoever finds a network's senders out moves everything of that network that waits for them.
CREATE INDEX refunds_open_by_network ON refunds (network) WHERE state NOT IN ('confirmed', 'void');
