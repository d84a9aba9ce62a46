-- +goose Up
-- A facilitator with `proof: later` says that it has settled, and the service is asked on its word. Such a call has no proof yet: its payment
-- is sent, its transaction is the one that the facilitator names (sent_transaction), and word_of says whose word it was. It stays there when the
-- proof has come. Code that knows nothing of words finds such a payment by its logs as one that the chain has dropped, and writes the proof.
ALTER TABLE calls ADD COLUMN word_of text, ADD COLUMN word_at timestamptz;
-- Since when the nonce of a payment that was believed looks used by something else: an index of logs may lag behind the state, so that one look is
-- not enough to write money off.
ALTER TABLE calls ADD COLUMN used_since timestamptz;
ALTER TABLE calls
	ADD CONSTRAINT calls_word_whole CHECK ((word_of IS NULL) = (word_at IS NULL) AND (word_of IS NULL OR sent_transaction IS NOT NULL)),
	DROP CONSTRAINT calls_settled_is_proved,
	-- Nothing goes on without a proof but on a word.
	ADD CONSTRAINT calls_settled_is_proved CHECK
		(state NOT IN ('settled', 'asked', 'served', 'failed', 'cooldown_refused') OR transaction IS NOT NULL OR word_of IS NOT NULL),
	DROP CONSTRAINT calls_proof_has_a_life,
	-- A payment lives from its proof on, or from a word: without a proof it is sent, or lost because the word was false.
	ADD CONSTRAINT calls_proof_has_a_life CHECK (CASE
		WHEN transaction IS NOT NULL THEN payment_state IS NOT NULL
		WHEN word_of IS NULL THEN payment_state IS NULL
		ELSE coalesce(payment_state IN ('sent', 'lost'), false) END);
-- What is not proved yet: few, summed up before each word that is believed, and by payer before each claim.
CREATE INDEX calls_unproved_words ON calls (network) INCLUDE (asset, amount) WHERE payment_state = 'sent' AND transaction IS NULL;
CREATE INDEX calls_unproved_words_by_payer ON calls (payer, created_at) WHERE payment_state = 'sent' AND transaction IS NULL;
-- Words that were false: who gave one is not believed again.
CREATE INDEX calls_false_words ON calls (word_of) WHERE payment_state = 'lost' AND transaction IS NULL;

-- One row a network, locked while a word is weighed: of two replicas the second sees what the first has taken of the budget.
CREATE TABLE exposures (network text PRIMARY KEY);
