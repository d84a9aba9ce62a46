-- +goose Up
-- What the chain says of our treasuries, log by log, to be held against what we say: every transfer into and out of them, up to a block that is final.
CREATE TABLE wallets (
	network         text NOT NULL,
	asset           bytea NOT NULL CONSTRAINT wallets_asset_bytes CHECK (length(asset) = 20),
	treasury        bytea NOT NULL CONSTRAINT wallets_treasury_bytes CHECK (length(treasury) = 20),
	-- Where its reconciliation begins, and what was there: of what is at or below that block no log is looked for.
	opening_block   bigint NOT NULL CONSTRAINT wallets_opening_not_negative CHECK (opening_block >= 0),
	opening_balance numeric(78, 0) NOT NULL CONSTRAINT wallets_opening_amount CHECK (opening_balance >= 0),
	opened_at       timestamptz NOT NULL DEFAULT market_now(),
	-- The mark: every transfer above the opening, up to and with this block, is among wallet_transfers.
	scanned_block   bigint NOT NULL,
	scanned_hash    bytea NOT NULL CONSTRAINT wallets_scanned_bytes CHECK (length(scanned_hash) = 32),
	-- What the wallet held at the last block that was scanned to its end.
	held_block      bigint NOT NULL,
	held            numeric(78, 0) NOT NULL CONSTRAINT wallets_held_amount CHECK (held >= 0),
	compared_at     timestamptz, -- with what we say; null: never
	-- How far chain, rows and books were found to agree, so that a look reads what is new and not all that ever was: up to this block, in which the logs since
	-- the opening come to agreed_sum, and by all transactions of the books up to agreed_books. What was posted since then is looked at again, whatever its block.
	agreed_block    bigint NOT NULL,
	agreed_sum      numeric(79, 0) NOT NULL DEFAULT 0,
	agreed_books    bigint NOT NULL,
	PRIMARY KEY (network, asset, treasury),
	CONSTRAINT wallets_scanned_from_the_opening CHECK (scanned_block >= opening_block AND held_block >= opening_block),
	CONSTRAINT wallets_agreed_within_what_is_scanned CHECK (agreed_block BETWEEN opening_block AND scanned_block)
);

-- It follows the chain: what a range holds replaces what was found there before.
CREATE TABLE wallet_transfers (
	network      text NOT NULL,
	asset        bytea NOT NULL,
	treasury     bytea NOT NULL,
	transaction  bytea NOT NULL CONSTRAINT wallet_transfers_transaction_bytes CHECK (length(transaction) = 32),
	log_index    int NOT NULL CONSTRAINT wallet_transfers_log_not_negative CHECK (log_index >= 0),
	block_number bigint NOT NULL,
	block_hash   bytea NOT NULL CONSTRAINT wallet_transfers_block_bytes CHECK (length(block_hash) = 32),
	direction    text NOT NULL CONSTRAINT wallet_transfers_direction_known CHECK (direction IN ('in', 'out')),
	counterparty bytea NOT NULL CONSTRAINT wallet_transfers_counterparty_bytes CHECK (length(counterparty) = 20),
	amount       numeric(78, 0) NOT NULL CONSTRAINT wallet_transfers_amount_positive CHECK (amount > 0),
	seen_at      timestamptz NOT NULL DEFAULT market_now(),
	-- The row of ours that says why it moved.
	partner_kind text CONSTRAINT wallet_transfers_partner_known CHECK (partner_kind IN ('call', 'refund', 'payout', 'entry')),
	partner_id   text,
	-- Between two treasuries of ours it is one log, and two transfers.
	PRIMARY KEY (network, transaction, log_index, treasury),
	FOREIGN KEY (network, asset, treasury) REFERENCES wallets (network, asset, treasury),
	CONSTRAINT wallet_transfers_partner_whole CHECK (num_nulls(partner_kind, partner_id) IN (0, 2))
);
CREATE INDEX wallet_transfers_by_block ON wallet_transfers (network, asset, treasury, block_number);
CREATE INDEX wallet_transfers_claimable ON wallet_transfers (network, asset, treasury) WHERE partner_kind IS NULL OR partner_kind = 'entry';

-- Money that went from one treasury of ours into another one: one log, and so one entry, with a transaction in the books of each.
ALTER TABLE ledger_entries
	ADD COLUMN to_treasury bytea CONSTRAINT ledger_entries_to_treasury_bytes CHECK (length(to_treasury) = 20),
	DROP CONSTRAINT ledger_entries_kind_known,
	ADD CONSTRAINT ledger_entries_kind_known CHECK (kind IN ('top_up', 'fee_withdrawal', 'suspense', 'moved')),
	ADD CONSTRAINT ledger_entries_moved_elsewhere CHECK ((kind = 'moved') = (to_treasury IS NOT NULL) AND to_treasury IS DISTINCT FROM treasury);

-- What each row of ours says has moved. A transfer that stands in suspense and that a call has claimed since is the call's.
CREATE VIEW transfer_claims AS
SELECT 'call' AS kind, id::text AS id, network, asset, treasury, transaction, log_index, block_number, 'in' AS direction, payer AS counterparty, amount,
       payment_state = 'final' AS final
  FROM calls WHERE transaction IS NOT NULL AND payment_state <> 'lost'
UNION ALL
SELECT 'refund', call_id::text, network, asset, authorizer, transaction, log_index, block_number, 'out', payer, amount, true
  FROM refunds WHERE state = 'confirmed'
UNION ALL
SELECT 'entry', e.id::text, e.network, e.asset, e.treasury, e.transaction, e.log_index, e.block_number,
       CASE WHEN e.kind IN ('fee_withdrawal', 'moved') THEN 'out' ELSE 'in' END, e.to_treasury, e.amount, true
  FROM ledger_entries e
 WHERE e.kind <> 'suspense' OR NOT EXISTS (
	SELECT 1 FROM calls c WHERE c.network = e.network AND c.transaction = e.transaction AND c.log_index = e.log_index AND c.payment_state <> 'lost')
UNION ALL
SELECT 'entry', e.id::text, e.network, e.asset, e.to_treasury, e.transaction, e.log_index, e.block_number, 'in', e.treasury, e.amount, true
  FROM ledger_entries e WHERE e.kind = 'moved';

-- A look reads what moved in the blocks that are new to it. The block comes first and alone: an index that began with the network would pass for one by which a
-- single transfer can be found.
CREATE INDEX calls_by_block ON calls (block_number) WHERE transaction IS NOT NULL;
CREATE INDEX refunds_by_block ON refunds (block_number) WHERE state = 'confirmed';
CREATE INDEX ledger_entries_by_block ON ledger_entries (block_number);
CREATE INDEX ledger_postings_by_block ON ledger_postings (block_number) WHERE account = 'treasury';

-- What looks different, since when and in how many looks in a row. It is a difference only once it has lasted.
CREATE TABLE suspicions (
	network  text NOT NULL,
	asset    bytea NOT NULL,
	treasury bytea NOT NULL,
	kind     text NOT NULL CONSTRAINT suspicions_kind_known CHECK (kind IN ('inflow', 'outflow', 'row', 'wallet', 'ledger', 'liabilities')),
	subject  text NOT NULL,
	text     text NOT NULL,
	since    timestamptz NOT NULL DEFAULT market_now(),
	looks    int NOT NULL DEFAULT 1,
	PRIMARY KEY (network, asset, treasury, kind, subject)
);

CREATE TABLE differences (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	network    text NOT NULL,
	asset      bytea NOT NULL CONSTRAINT differences_asset_bytes CHECK (length(asset) = 20),
	treasury   bytea NOT NULL CONSTRAINT differences_treasury_bytes CHECK (length(treasury) = 20),
	kind       text NOT NULL CONSTRAINT differences_kind_known CHECK (kind IN ('inflow', 'outflow', 'row', 'wallet', 'ledger', 'liabilities', 'reorganised')),
	subject    text NOT NULL,
	text       text NOT NULL CONSTRAINT differences_text_given CHECK (text <> ''),
	since      timestamptz NOT NULL,
	named_at   timestamptz NOT NULL DEFAULT market_now(),
	closed_at  timestamptz, -- since when nobody new is asked to pay on its network
	ended_at   timestamptz,
	CONSTRAINT differences_inflow_closes_nothing CHECK (kind <> 'inflow' OR closed_at IS NULL)
);
-- However many replicas see it, it is one.
CREATE UNIQUE INDEX differences_one_open ON differences (network, asset, treasury, kind, subject) WHERE ended_at IS NULL;
CREATE INDEX differences_by_age ON differences (named_at DESC, id DESC);
CREATE TRIGGER differences_kept BEFORE UPDATE OF id, network, asset, treasury, kind, subject, text, since, named_at OR DELETE OR TRUNCATE ON differences
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER differences_end_once BEFORE UPDATE ON differences
	FOR EACH ROW WHEN (OLD.ended_at IS NOT NULL) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER differences_changed AFTER INSERT OR UPDATE ON differences
	FOR EACH ROW EXECUTE FUNCTION notify_changed('differences'); -- each row: most looks change none

-- Whose turn it is: a network is reconciled by one process at a time.
CREATE TABLE reconcilings (
	network text PRIMARY KEY,
	due_at  timestamptz NOT NULL DEFAULT market_now()
);

-- When the balances are folded next, by one process of all.
ALTER TABLE ledger_folded ADD COLUMN due_at timestamptz NOT NULL DEFAULT '-infinity';

-- A transfer was in suspense, because nobody knew what for, and a call has claimed it since: whoever signs an authorization may send it himself, and show
-- it to us later. The call is posted with its transfer, so the suspense is given back by a transaction of its own, and the entry stays as it was made.
ALTER TABLE ledger_transactions
	DROP CONSTRAINT ledger_transactions_kind_known,
	ADD CONSTRAINT ledger_transactions_kind_known CHECK (kind IN ('call', 'top_up', 'fee_withdrawal', 'suspense', 'suspense_claimed', 'moved_out', 'moved_in'));
DROP INDEX ledger_transactions_by_entry;
CREATE UNIQUE INDEX ledger_transactions_by_entry ON ledger_transactions (entry_id, kind) WHERE entry_id IS NOT NULL;

-- As in 0031, and what moves between two treasuries: each is balanced by itself, so the operator gave to one what he took from the other.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION ledger_enter() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
	earned numeric;
BEGIN
	IF NEW.kind = 'fee_withdrawal' THEN
		IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
			RAISE EXCEPTION 'what moves money is read committed' USING ERRCODE = 'active_sql_transaction';
		END IF;
		PERFORM pg_advisory_xact_lock(hashtextextended(format('ledger fees of %s %s %s', NEW.network, NEW.asset, NEW.treasury), 0));
		SELECT - sum(amount) INTO earned FROM ledger_standing
		 WHERE network = NEW.network AND asset = NEW.asset AND treasury = NEW.treasury AND account = 'fees';
		IF NEW.amount > coalesce(earned, 0) THEN
			RAISE EXCEPTION 'the fees are %, and % were to be withdrawn', coalesce(earned, 0), NEW.amount
				USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_entries_within_fees';
		END IF;
	END IF;
	WITH made AS (
		INSERT INTO ledger_transactions (network, asset, treasury, kind, entry_id)
		SELECT NEW.network, NEW.asset, m.treasury, m.kind, NEW.id
		  FROM (VALUES (NEW.treasury, CASE NEW.kind WHEN 'moved' THEN 'moved_out' ELSE NEW.kind END), (NEW.to_treasury, 'moved_in')) AS m (treasury, kind)
		 WHERE m.treasury IS NOT NULL
		RETURNING id, kind
	)
	INSERT INTO ledger_postings (transaction_id, line, account, amount, transaction, log_index, block_number)
	SELECT id, 1, 'treasury', CASE WHEN kind IN ('fee_withdrawal', 'moved_out') THEN - NEW.amount ELSE NEW.amount END,
	       NEW.transaction, NEW.log_index, NEW.block_number FROM made
	UNION ALL
	SELECT id, 2, CASE kind WHEN 'suspense' THEN 'suspense' WHEN 'fee_withdrawal' THEN 'fees' WHEN 'top_up' THEN 'operator'
	                        WHEN 'moved_out' THEN 'operator' WHEN 'moved_in' THEN 'operator' END,
	       CASE WHEN kind IN ('fee_withdrawal', 'moved_out') THEN NEW.amount ELSE - NEW.amount END, NULL, NULL, NULL FROM made;
	RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION ledger_give_back_claimed(on_network text) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
	given bigint;
BEGIN
	WITH claimed AS (
		SELECT e.id, e.network, e.asset, e.treasury, e.amount, e.transaction, e.log_index, e.block_number
		  FROM wallet_transfers t, LATERAL (
			SELECT id, network, asset, treasury, amount, transaction, log_index, block_number FROM ledger_entries
			 WHERE network = t.network AND transaction = t.transaction AND log_index = t.log_index AND treasury = t.treasury AND kind = 'suspense' OFFSET 0
		       ) e
		 WHERE t.network = on_network AND (t.partner_kind IS NULL OR t.partner_kind = 'entry') -- null: it was booked by the last look, and claimed before this one
		   AND EXISTS (
			SELECT 1 FROM calls c
			 WHERE c.network = t.network AND c.transaction = t.transaction AND c.log_index = t.log_index AND c.treasury = t.treasury AND c.payment_state <> 'lost' OFFSET 0)
	), made AS (
		INSERT INTO ledger_transactions (network, asset, treasury, kind, entry_id)
		SELECT network, asset, treasury, 'suspense_claimed', id FROM claimed
		ON CONFLICT (entry_id, kind) WHERE entry_id IS NOT NULL DO NOTHING
		RETURNING id, entry_id
	), posted AS (
		INSERT INTO ledger_postings (transaction_id, line, account, amount, transaction, log_index, block_number)
		SELECT m.id, 1, 'treasury', - c.amount, c.transaction, c.log_index, c.block_number FROM made m JOIN claimed c ON c.id = m.entry_id
		UNION ALL
		SELECT m.id, 2, 'suspense', c.amount, NULL, NULL, NULL FROM made m JOIN claimed c ON c.id = m.entry_id
	)
	SELECT count(*) INTO given FROM made;
	RETURN given;
END $$;
-- +goose StatementEnd
