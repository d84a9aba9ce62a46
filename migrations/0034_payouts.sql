-- +goose Up
-- What providers have earned, and how it gets to them. A payout takes the provider's postings of calls whose payment is final, each of them once, and is one
-- transfer of the treasury that holds their money.

-- Where an account is paid, on each network. A change waits, so that whoever steals a session can not also take what comes next; it is history, which is added to.
CREATE TABLE payout_addresses (
	id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	account_id   uuid NOT NULL REFERENCES accounts (id),
	network      text NOT NULL CONSTRAINT payout_addresses_network_given CHECK (network <> ''),
	address      bytea NOT NULL CONSTRAINT payout_addresses_address_bytes CHECK (length(address) = 20)
	             CONSTRAINT payout_addresses_address_somebody CHECK (address <> '\x0000000000000000000000000000000000000000'),
	set_at       timestamptz NOT NULL DEFAULT market_now(),
	effective_at timestamptz NOT NULL,
	CONSTRAINT payout_addresses_hold_later CHECK (effective_at >= set_at)
);
CREATE INDEX payout_addresses_by_account ON payout_addresses (account_id, network, id DESC);
CREATE TRIGGER payout_addresses_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON payout_addresses
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The address that holds now; null: none does. One that still waited when a newer one was set never holds: whoever sees a change that is not theirs takes it
-- back by setting another.
CREATE FUNCTION payout_address(account uuid, of_network text) RETURNS bytea
LANGUAGE sql STABLE
AS $$
	SELECT a.address FROM payout_addresses a
	 WHERE a.account_id = account AND a.network = of_network AND a.effective_at <= market_now()
	   AND NOT EXISTS (SELECT 1 FROM payout_addresses n
	                    WHERE n.account_id = account AND n.network = of_network AND n.id > a.id AND n.set_at < a.effective_at)
	 ORDER BY a.id DESC LIMIT 1
$$;

-- Why nothing may be sent to an account at the moment; empty: it may.
CREATE FUNCTION payout_stopped(account uuid) RETURNS text
LANGUAGE sql STABLE
AS $$
	SELECT CASE
		WHEN EXISTS (SELECT 1 FROM switches WHERE kind = 'stop_payouts' AND is_on) THEN 'the operator has stopped all payouts'
		WHEN EXISTS (SELECT 1 FROM services WHERE owner_id = account AND state = 'suspended') THEN 'a service of this account is suspended'
		ELSE '' END
$$;

CREATE TABLE payouts (
	id           uuid PRIMARY KEY,
	account_id   uuid NOT NULL REFERENCES accounts (id),
	network      text NOT NULL CONSTRAINT payouts_network_given CHECK (network <> ''),
	asset        bytea NOT NULL CONSTRAINT payouts_asset_bytes CHECK (length(asset) = 20),
	treasury     bytea NOT NULL CONSTRAINT payouts_treasury_bytes CHECK (length(treasury) = 20), -- that holds the money, and signs
	number       bigint NOT NULL CONSTRAINT payouts_number_counted CHECK (number > 0),
	amount       numeric(78, 0) NOT NULL CONSTRAINT payouts_amount_positive CHECK (amount > 0),
	address      bytea NOT NULL CONSTRAINT payouts_address_bytes CHECK (length(address) = 20)
	             CONSTRAINT payouts_address_not_ours CHECK (address <> treasury),
	nonce        bytea NOT NULL CONSTRAINT payouts_nonce_bytes CHECK (length(nonce) = 32),
	from_block   bigint NOT NULL CONSTRAINT payouts_from_block_not_negative CHECK (from_block >= 0), -- of its newest payment: it can not have left before
	state        text NOT NULL DEFAULT 'owed'
	             CONSTRAINT payouts_state_known CHECK (state IN ('owed', 'sent', 'confirmed', 'parked', 'cancelled')),
	held         boolean NOT NULL DEFAULT false, -- by an admin, whatever its state
	why          text NOT NULL DEFAULT '',
	parked_told  boolean NOT NULL DEFAULT false, -- its provider knows that it was parked
	waits_for    text NOT NULL DEFAULT '',
	attempts     int NOT NULL DEFAULT 0,
	made_at      timestamptz NOT NULL DEFAULT market_now(),
	made_by      text NOT NULL CONSTRAINT payouts_author_given CHECK (made_by <> ''),
	next_at      timestamptz NOT NULL DEFAULT market_now(),
	signed_at    timestamptz, -- the first time: from then on it may have left
	transaction  bytea CONSTRAINT payouts_transaction_bytes CHECK (length(transaction) = 32),
	log_index    int,
	block_number bigint,
	confirmed_at timestamptz,
	written_by   xid8 NOT NULL DEFAULT pg_current_xact_id(),
	CONSTRAINT payouts_number_unique UNIQUE (account_id, network, asset, number),
	CONSTRAINT payouts_authorization_unique UNIQUE (network, asset, treasury, nonce),
	CONSTRAINT payouts_transfer_unique UNIQUE (network, transaction, log_index),
	CONSTRAINT payouts_confirmed_is_proved CHECK
		((state = 'confirmed') = (transaction IS NOT NULL) AND num_nulls(transaction, log_index, block_number, confirmed_at) IN (0, 4)),
	CONSTRAINT payouts_sent_is_signed CHECK (state <> 'sent' OR signed_at IS NOT NULL),
	CONSTRAINT payouts_cancelled_never_left CHECK (state <> 'cancelled' OR signed_at IS NULL)
);
-- One at a time: what is earned meanwhile waits for the next, and whoever is held is held with all of it.
CREATE UNIQUE INDEX payouts_one_open ON payouts (account_id, network, asset, treasury) WHERE state NOT IN ('confirmed', 'cancelled');
CREATE INDEX payouts_due ON payouts (next_at) WHERE state NOT IN ('confirmed', 'cancelled');
CREATE INDEX payouts_by_time ON payouts (made_at DESC, id DESC);
CREATE INDEX payouts_by_block ON payouts (block_number) WHERE state = 'confirmed';

CREATE TRIGGER payouts_kept BEFORE UPDATE OF id, account_id, network, asset, treasury, number, amount, nonce, from_block, made_at, made_by, written_by
	OR DELETE OR TRUNCATE ON payouts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payouts_ended BEFORE UPDATE ON payouts
	FOR EACH ROW WHEN (OLD.state IN ('confirmed', 'cancelled')) EXECUTE FUNCTION refuse_change();

-- Every authorization that was signed, to whom, written before it left. Another one is signed only after all of these have lapsed.
CREATE TABLE payout_signatures (
	payout_id    uuid NOT NULL REFERENCES payouts (id),
	valid_before bigint NOT NULL,
	address      bytea NOT NULL CONSTRAINT payout_signatures_address_bytes CHECK (length(address) = 20),
	from_block   bigint NOT NULL CONSTRAINT payout_signatures_from_block_not_negative CHECK (from_block >= 0), -- it can not have left by this one before
	signature    bytea NOT NULL CONSTRAINT payout_signatures_bytes CHECK (length(signature) = 65),
	signed_at    timestamptz NOT NULL DEFAULT market_now(),
	PRIMARY KEY (payout_id, valid_before)
);
CREATE TRIGGER payout_signatures_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON payout_signatures
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- The postings that a payout pays. A posting is in one payout at a time; only one that was cancelled, which has never left, gives it back.
CREATE TABLE payout_items (
	payout_id      uuid NOT NULL REFERENCES payouts (id),
	transaction_id bigint NOT NULL,
	line           smallint NOT NULL,
	released       boolean NOT NULL DEFAULT false,
	PRIMARY KEY (payout_id, transaction_id, line),
	FOREIGN KEY (transaction_id, line) REFERENCES ledger_postings (transaction_id, line)
);
CREATE UNIQUE INDEX payout_items_once ON payout_items (transaction_id, line) WHERE NOT released;

-- The items of a payout come with it. Deferred, as its check is: nothing in between can be seen.
-- +goose StatementBegin
CREATE FUNCTION payout_checked() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
	total numeric;
	alien bigint;
BEGIN
	SELECT - sum(p.amount), count(*) FILTER (WHERE (p.account, p.owner, t.network, t.asset, t.treasury, c.payment_state)
	       IS DISTINCT FROM ('provider', NEW.account_id, NEW.network, NEW.asset, NEW.treasury, 'final'))
	  INTO total, alien
	  FROM payout_items i
	  JOIN ledger_postings p USING (transaction_id, line)
	  JOIN ledger_transactions t ON t.id = p.transaction_id
	  LEFT JOIN calls c ON c.id = t.call_id
	 WHERE i.payout_id = NEW.id;
	IF total IS DISTINCT FROM NEW.amount OR alien > 0 THEN
		RAISE EXCEPTION 'payout % is of %, its items come to %, and % of them are none of its', NEW.id, NEW.amount, total, alien
			USING ERRCODE = 'check_violation', CONSTRAINT = 'payouts_sum_of_items';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER payouts_checked AFTER INSERT ON payouts
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION payout_checked();
-- +goose StatementBegin
CREATE FUNCTION payout_items_of_now() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	IF EXISTS (SELECT 1 FROM added a LEFT JOIN payouts p ON p.id = a.payout_id
	            WHERE p.written_by IS DISTINCT FROM pg_current_xact_id() OR a.released) THEN
		RAISE EXCEPTION 'an item comes with its payout' USING ERRCODE = 'check_violation', CONSTRAINT = 'payout_items_of_now';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payout_items_of_now AFTER INSERT ON payout_items
	REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION payout_items_of_now();
-- +goose StatementBegin
CREATE FUNCTION payout_item_released() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	IF (NEW.payout_id, NEW.transaction_id, NEW.line, NEW.released) IS DISTINCT FROM (OLD.payout_id, OLD.transaction_id, OLD.line, true)
	   OR NOT EXISTS (SELECT 1 FROM payouts WHERE id = NEW.payout_id AND state = 'cancelled') THEN
		RAISE EXCEPTION 'an item is given back by the end of its payout alone' USING ERRCODE = 'check_violation', CONSTRAINT = 'payout_items_kept';
	END IF;
	RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER payout_items_kept BEFORE UPDATE ON payout_items FOR EACH ROW EXECUTE FUNCTION payout_item_released();
CREATE TRIGGER payout_items_only_added BEFORE DELETE OR TRUNCATE ON payout_items
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- +goose StatementBegin
CREATE FUNCTION payout_cancelled() RETURNS trigger
LANGUAGE plpgsql
AS $$ BEGIN UPDATE payout_items SET released = true WHERE payout_id = NEW.id; RETURN NULL; END $$;
-- +goose StatementEnd
CREATE TRIGGER payouts_cancelled AFTER UPDATE OF state ON payouts
	FOR EACH ROW WHEN (NEW.state = 'cancelled') EXECUTE FUNCTION payout_cancelled();

-- What providers have earned and no payout has taken. Whether it may be paid out is that its payment is final: of one that the chain took back there is nothing
-- to pay with but what others have paid.
CREATE INDEX ledger_postings_of_providers ON ledger_postings (owner, transaction_id) WHERE account = 'provider' AND owner IS NOT NULL;
CREATE VIEW payout_postings AS
SELECT p.owner AS account_id, t.network, t.asset, t.treasury, p.transaction_id, p.line, - p.amount AS amount, t.call_id,
       coalesce(c.payment_state = 'final', false) AS final, coalesce(c.payment_state = 'lost', false) AS lost, coalesce(c.block_number, 0) AS block_number
  FROM ledger_postings p
  JOIN ledger_transactions t ON t.id = p.transaction_id
  JOIN calls c ON c.id = t.call_id
 WHERE p.account = 'provider' AND p.owner IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM payout_items i WHERE i.transaction_id = p.transaction_id AND i.line = p.line AND NOT i.released);

-- What a treasury owes to providers is read of the balances, less what stands at a block or above, and what the chain took back. Both are few, and a row comes
-- into these when its call has ended long ago.
CREATE INDEX calls_final_by_block ON calls (network, block_number) WHERE payment_state = 'final';
CREATE INDEX calls_lost ON calls (id) WHERE payment_state = 'lost';

-- What accounts have to get in all, of the folded balances: cheap, and enough to tell who is worth a look.
CREATE VIEW payout_standing AS
SELECT l.owner AS account_id, a.plan, l.network, l.asset, l.treasury, - l.amount AS amount
  FROM ledger_standing l JOIN accounts a ON a.id = l.owner
 WHERE l.account = 'provider' AND l.amount < 0
   AND payout_address(l.owner, l.network) IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM payouts p WHERE p.account_id = l.owner AND p.network = l.network AND p.asset = l.asset AND p.treasury = l.treasury
                      AND p.state NOT IN ('confirmed', 'cancelled'));

-- The books: a payout that is confirmed has left the treasury, and the provider has it. The database posts it, in the transaction that confirms it.
ALTER TABLE ledger_transactions
	ADD COLUMN payout_id uuid REFERENCES payouts (id),
	DROP CONSTRAINT ledger_transactions_kind_known,
	DROP CONSTRAINT ledger_transactions_one_subject,
	ADD CONSTRAINT ledger_transactions_kind_known 
		CHECK (kind IN ('call', 'top_up', 'fee_withdrawal', 'suspense', 'suspense_claimed', 'moved_out', 'moved_in', 'payout')),
	ADD CONSTRAINT ledger_transactions_one_subject CHECK ((kind = 'call') = (call_id IS NOT NULL) AND (kind = 'payout') = (payout_id IS NOT NULL)
		AND num_nonnulls(call_id, entry_id, payout_id) = 1);
CREATE UNIQUE INDEX ledger_transactions_by_payout ON ledger_transactions (payout_id) WHERE payout_id IS NOT NULL;
-- +goose StatementBegin
CREATE FUNCTION ledger_pay_out() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	WITH made AS (
		INSERT INTO ledger_transactions (network, asset, treasury, kind, payout_id)
		SELECT network, asset, treasury, 'payout', id FROM payouts WHERE id = NEW.id
		ON CONFLICT (payout_id) WHERE payout_id IS NOT NULL DO NOTHING
		RETURNING id
	)
	INSERT INTO ledger_postings (transaction_id, line, account, owner, amount, transaction, log_index, block_number)
	SELECT made.id, 1, 'treasury', NULL::uuid, - NEW.amount, NEW.transaction, NEW.log_index, NEW.block_number FROM made
	UNION ALL
	SELECT made.id, 2, 'provider', NEW.account_id, NEW.amount, NULL, NULL, NULL FROM made;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER payouts_posted AFTER INSERT OR UPDATE ON payouts
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.state = 'confirmed') EXECUTE FUNCTION ledger_pay_out();

-- As in 0033, and payouts.
CREATE OR REPLACE VIEW transfer_claims AS
SELECT 'call' AS kind, id::text AS id, network, asset, treasury, transaction, log_index, block_number, 'in' AS direction, payer AS counterparty, amount,
       payment_state = 'final' AS final
  FROM calls WHERE transaction IS NOT NULL AND payment_state <> 'lost'
UNION ALL
SELECT 'refund', call_id::text, network, asset, authorizer, transaction, log_index, block_number, 'out', payer, amount, true
  FROM refunds WHERE state = 'confirmed'
UNION ALL
SELECT 'payout', id::text, network, asset, treasury, transaction, log_index, block_number, 'out', address, amount, true
  FROM payouts WHERE state = 'confirmed'
UNION ALL
SELECT 'entry', e.id::text, e.network, e.asset, e.treasury, e.transaction, e.log_index, e.block_number,
       CASE WHEN e.kind IN ('fee_withdrawal', 'moved') THEN 'out' ELSE 'in' END, e.to_treasury, e.amount, true
  FROM ledger_entries e
 WHERE e.kind <> 'suspense' OR NOT EXISTS (
	SELECT 1 FROM calls c WHERE c.network = e.network AND c.transaction = e.transaction AND c.log_index = e.log_index AND c.payment_state <> 'lost')
UNION ALL
SELECT 'entry', e.id::text, e.network, e.asset, e.to_treasury, e.transaction, e.log_index, e.block_number, 'in', e.treasury, e.amount, true
  FROM ledger_entries e WHERE e.kind = 'moved';

-- A payout, call by call. What a call's postings in it come to is its share, but for corrections: those of a payment that the chain took back and brought again.
-- Price and fee have the sign of the share, so that each line adds up, and the sums do.
CREATE VIEW payout_lines AS
SELECT i.payout_id, c.id AS call_id, coalesce(d.recorded_at, c.created_at) AS at, s.slug AS service, - sign(sum(p.amount)) * c.amount AS price,
       - sign(sum(p.amount)) * div(c.amount * c.fee_bps, 10000) AS fee, - sum(p.amount) AS share
  FROM payout_items i
  JOIN ledger_postings p USING (transaction_id, line)
  JOIN ledger_transactions t ON t.id = p.transaction_id
  JOIN calls c ON c.id = t.call_id
  JOIN services s ON s.id = c.service_id
  LEFT JOIN deliveries d ON d.call_id = c.id AND NOT d.trial
 GROUP BY i.payout_id, c.id, d.recorded_at, s.slug;
