-- +goose Up
-- The books: double entry, per network, asset and treasury. They are posted by the database from the rows that money moves by, in the transaction that
-- moves it: neither a statement of ours can forget them, nor a program from before this migration that still runs, nor a person at a prompt.
--
-- Old programs write while this runs. From here on they wait, in the order in which they lock themselves, so that nothing is moved between what is
-- posted below for everything that is there and the triggers.
LOCK TABLE calls, deliveries, refunds IN SHARE ROW EXCLUSIVE MODE;

-- The account that the share of a call belongs to: whoever owned the service when the payment was claimed. It is pinned then, as the fee is, so that a
-- service which changes hands takes no share along that was earned before. Null: the service had no account. No foreign key: see ledger_post.
ALTER TABLE calls ADD COLUMN provider_id uuid;
UPDATE calls c SET provider_id = s.owner_id FROM services s WHERE s.id = c.service_id AND s.owner_id IS NOT NULL;
-- +goose StatementBegin
CREATE FUNCTION pin_provider() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	NEW.provider_id := (SELECT owner_id FROM services WHERE id = NEW.service_id);
	RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER calls_provider_pinned BEFORE INSERT ON calls
	FOR EACH ROW WHEN (NEW.provider_id IS NULL) EXECUTE FUNCTION pin_provider();

-- What the operator books by hand: transfers that belong to no call. Each has its transaction from the moment it is there.
CREATE TABLE ledger_entries (
	id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	network      text NOT NULL CONSTRAINT ledger_entries_network_given CHECK (network <> ''),
	asset        bytea NOT NULL CONSTRAINT ledger_entries_asset_bytes CHECK (length(asset) = 20),
	treasury     bytea NOT NULL CONSTRAINT ledger_entries_treasury_bytes CHECK (length(treasury) = 20),
	kind         text NOT NULL CONSTRAINT ledger_entries_kind_known CHECK (kind IN ('top_up', 'fee_withdrawal', 'suspense')),
	amount       numeric(78, 0) NOT NULL CONSTRAINT ledger_entries_amount_positive CHECK (amount > 0),
	transaction  bytea NOT NULL CONSTRAINT ledger_entries_transaction_bytes CHECK (length(transaction) = 32),
	log_index    int NOT NULL CONSTRAINT ledger_entries_log_not_negative CHECK (log_index >= 0),
	block_number bigint NOT NULL CONSTRAINT ledger_entries_block_not_negative CHECK (block_number >= 0),
	reason       text NOT NULL CONSTRAINT ledger_entries_reason_given CHECK (reason <> ''),
	by           text NOT NULL CONSTRAINT ledger_entries_author_given CHECK (by <> ''),
	at           timestamptz NOT NULL DEFAULT market_now(),
	CONSTRAINT ledger_entries_transfer_unique UNIQUE (network, transaction, log_index)
);

-- One row a movement in the books: what it is about, and where the money is. What moved are its postings.
CREATE TABLE ledger_transactions (
	id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	network    text NOT NULL,
	asset      bytea NOT NULL, -- checked where it comes from, as all of these
	treasury   bytea NOT NULL,
	kind       text NOT NULL CONSTRAINT ledger_transactions_kind_known CHECK (kind IN ('call', 'top_up', 'fee_withdrawal', 'suspense')),
	call_id    uuid,
	entry_id   bigint REFERENCES ledger_entries (id),
	at         timestamptz NOT NULL DEFAULT market_now(),
	-- The database transaction that wrote it, and that alone writes its postings: what stands below the watermark of the balances has all of them.
	written_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
	CONSTRAINT ledger_transactions_one_subject CHECK ((kind = 'call') = (call_id IS NOT NULL) AND num_nonnulls(call_id, entry_id) = 1)
);
CREATE INDEX ledger_transactions_by_call ON ledger_transactions (call_id) WHERE call_id IS NOT NULL;
CREATE UNIQUE INDEX ledger_transactions_by_entry ON ledger_transactions (entry_id) WHERE entry_id IS NOT NULL;

-- A debit is positive, a credit negative. A posting that stands for a transfer says which. There is no foreign key to the transaction: the trigger below
-- looks for more than that it is there, once a statement instead of once a row.
CREATE TABLE ledger_postings (
	transaction_id bigint NOT NULL,
	line           smallint NOT NULL, -- from 1 on
	account        text NOT NULL CONSTRAINT ledger_postings_account_known CHECK (account IN
	               ('treasury', 'pending', 'provider', 'fees', 'refunds_payable', 'losses', 'suspense', 'operator')),
	owner          uuid, -- whose the share is, in the account provider; null: of a seller without an account
	amount         numeric(78, 0) NOT NULL CONSTRAINT ledger_postings_amount_some CHECK (amount <> 0),
	transaction    bytea CONSTRAINT ledger_postings_transaction_bytes CHECK (length(transaction) = 32),
	log_index      int,
	block_number   bigint,
	PRIMARY KEY (transaction_id, line),
	CONSTRAINT ledger_postings_owner_of_provider CHECK (account = 'provider' OR owner IS NULL),
	CONSTRAINT ledger_postings_transfer_whole CHECK (num_nulls(transaction, log_index, block_number) IN (0, 3))
);

-- The postings of a transaction come in one statement, of the database transaction that wrote it, and they sum to zero.
-- +goose StatementBegin
CREATE FUNCTION refuse_unbalanced() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
	wrong record;
BEGIN
	SELECT w.id, w.total INTO wrong
	  FROM (SELECT transaction_id AS id, sum(amount) AS total FROM written GROUP BY transaction_id) w
	 WHERE w.total <> 0 OR (SELECT t.written_by FROM ledger_transactions t WHERE t.id = w.id) IS DISTINCT FROM pg_current_xact_id()
	 LIMIT 1;
	IF NOT FOUND THEN
		RETURN NULL;
	ELSIF wrong.total <> 0 THEN
		RAISE EXCEPTION 'the postings of transaction % sum to %', wrong.id, wrong.total
			USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_postings_balanced';
	END IF;
	RAISE EXCEPTION 'transaction % is not one of now', wrong.id USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_postings_of_now';
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_postings_balanced AFTER INSERT ON ledger_postings
	REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION refuse_unbalanced();
-- +goose StatementBegin
CREATE FUNCTION refuse_empty() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM ledger_postings WHERE transaction_id = NEW.id AND line = 1) THEN
		RAISE EXCEPTION 'transaction % has no postings', NEW.id USING ERRCODE = 'check_violation', CONSTRAINT = 'ledger_transactions_posted';
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE CONSTRAINT TRIGGER ledger_transactions_posted AFTER INSERT ON ledger_transactions
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse_empty();

-- What the books must hold for each call, and nothing but what its rows say now: a payment that is proved came into its treasury, until it is lost, and
-- what it bought, or owes, stands against it. What is only a facilitator's word is in no book, unless it proved false after the call was served: the
-- provider has its share all the same, at our loss. What the other rows leave open is a loss where the payment is lost, and else in suspense: of
-- sound rows nothing is left, so the books are balanced whatever is there, and show what nobody can explain.
CREATE VIEW ledger_positions AS
SELECT f.call_id, f.network, f.asset, f.treasury, p.account, p.owner, p.amount, p.transaction, p.log_index, p.block_number
  FROM (
	SELECT c.id AS call_id, c.network, c.asset, c.treasury, c.provider_id, c.transaction, c.log_index, c.block_number,
	       r.transaction AS back_transaction, r.log_index AS back_log_index, r.block_number AS back_block_number,
	       c.payment_state = 'lost' AS lost,
	       CASE WHEN c.transaction IS NOT NULL AND c.payment_state <> 'lost' THEN c.amount ELSE 0 END AS paid,
	       CASE WHEN c.transaction IS NOT NULL AND c.payment_state <> 'lost' AND d.id IS NULL THEN c.amount ELSE 0 END AS pending,
	       CASE WHEN d.outcome = 'served' AND (c.transaction IS NOT NULL OR c.payment_state = 'lost') THEN c.amount ELSE 0 END AS served,
	       CASE WHEN d.outcome = 'served' AND (c.transaction IS NOT NULL OR c.payment_state = 'lost')
	            THEN div(c.amount * c.fee_bps, 10000) ELSE 0 END AS fee,
	       CASE WHEN c.transaction IS NOT NULL AND r.state IN ('owed', 'sent', 'parked') THEN r.amount ELSE 0 END AS owed,
	       CASE WHEN r.state = 'confirmed' THEN r.amount ELSE 0 END AS returned
	  FROM calls c
	  LEFT JOIN deliveries d ON d.call_id = c.id AND NOT d.trial
	  LEFT JOIN refunds r ON r.call_id = c.id
	 WHERE c.payment_state IS NOT NULL
  ) f, LATERAL (SELECT f.pending + f.served + f.owed + f.returned - f.paid AS open) o, LATERAL (VALUES
	('treasury',        NULL::uuid,    f.paid,             f.transaction,      f.log_index,      f.block_number),
	('treasury',        NULL,          - f.returned,       f.back_transaction, f.back_log_index, f.back_block_number),
	('pending',         NULL,          - f.pending,        NULL,               NULL,             NULL),
	('provider',        f.provider_id, f.fee - f.served,   NULL,               NULL,             NULL),
	('fees',            NULL,          - f.fee,            NULL,               NULL,             NULL),
	('refunds_payable', NULL,          - f.owed,           NULL,               NULL,             NULL),
	('losses',          NULL,          CASE WHEN f.lost THEN o.open ELSE 0 END, NULL, NULL, NULL),
	('suspense',        NULL,          CASE WHEN f.lost THEN 0 ELSE o.open END, NULL, NULL, NULL)
  ) AS p (account, owner, amount, transaction, log_index, block_number)
 WHERE p.amount <> 0;

-- ledger_post brings the books of one call to its position: it posts what is missing, as one transaction, and nothing where nothing is. So it may run as
-- often as it likes, and whatever it missed before it makes good.
--
-- Two transactions may move the same call by different rows, its payment and its refund, and neither sees what the other has not committed. So they take
-- turns by a lock on the call's id, and the look is a statement of its own after it: under READ COMMITTED it sees all that the one before has
-- written, and that one's turn ends with its commit. A snapshot that is older than the turn would post for the second time, so it is refused.
--
-- The lock makes no deadlock. Who takes it has all its rows by then, because the triggers below run when everything else of their transaction has. And
-- who has it waits for no row that another one holds: the look locks none, and what is written refers to no row of a call, a service or an account, which
-- is why there are no foreign keys to those. Only a fold may be waited for, which holds nothing else (internal/ledger). Two transactions
-- that each move several calls, the same ones by different rows and in another order, would meet the database's own deadlock detection; none of ours
-- moves the money of more than one.
--
-- It stands in every commit that moves money, so it must read by indexes alone, however fast the books have grown since the statistics were taken: that is
-- what the setting is for, and OFFSET 0, which keeps the postings of a transaction from being joined as a whole table.
-- +goose StatementBegin
CREATE FUNCTION ledger_post(subject uuid) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off
AS $$
BEGIN
	IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
		RAISE EXCEPTION 'what moves money is read committed' USING ERRCODE = 'active_sql_transaction';
	END IF;
	PERFORM pg_advisory_xact_lock(hashtextextended('ledger of call ' || subject, 0));
	WITH missing AS MATERIALIZED (
		SELECT account, owner, transaction, log_index, block_number, sum(amount) AS amount
		  FROM (
			SELECT account, owner, transaction, log_index, block_number, amount FROM ledger_positions WHERE call_id = subject
			UNION ALL
			SELECT p.account, p.owner, p.transaction, p.log_index, p.block_number, - p.amount
			  FROM ledger_transactions t, LATERAL (
				SELECT account, owner, transaction, log_index, block_number, amount FROM ledger_postings WHERE transaction_id = t.id OFFSET 0
			       ) p
			 WHERE t.call_id = subject
		  ) AS both_sides
		 GROUP BY account, owner, transaction, log_index, block_number
		HAVING sum(amount) <> 0
	), made AS (
		INSERT INTO ledger_transactions (network, asset, treasury, kind, call_id)
		SELECT network, asset, treasury, 'call', id FROM calls WHERE id = subject AND EXISTS (SELECT 1 FROM missing)
		RETURNING id
	)
	INSERT INTO ledger_postings (transaction_id, line, account, owner, amount, transaction, log_index, block_number)
	SELECT made.id, row_number() OVER (), account, owner, amount, transaction, log_index, block_number FROM missing, made;
END $$;
-- +goose StatementEnd

-- Everything that is there already, before anybody watches: what is posted here is balanced because each position is.
WITH made AS (
	INSERT INTO ledger_transactions (network, asset, treasury, kind, call_id)
	SELECT network, asset, treasury, 'call', id FROM calls
	 WHERE id IN (SELECT call_id FROM ledger_positions) ORDER BY id
	RETURNING id, call_id
)
INSERT INTO ledger_postings (transaction_id, line, account, owner, amount, transaction, log_index, block_number)
SELECT made.id, row_number() OVER (PARTITION BY made.id), p.account, p.owner, p.amount, p.transaction, p.log_index, p.block_number
  FROM made JOIN ledger_positions p USING (call_id);

-- What a position is made of, and nothing else, is worth a look: the marks of sweeper and worker are moved all the time.
-- +goose StatementBegin
CREATE FUNCTION ledger_follow() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	IF TG_TABLE_NAME = 'calls' THEN
		PERFORM ledger_post(NEW.id);
	ELSE
		PERFORM ledger_post(NEW.call_id);
	END IF;
	RETURN NULL;
END $$;
-- +goose StatementEnd
-- The deferred ones of ledger_transactions run at the end of this migration.
SET CONSTRAINTS ALL IMMEDIATE;
CREATE CONSTRAINT TRIGGER calls_posted_at_once AFTER INSERT ON calls
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.payment_state IS NOT NULL) EXECUTE FUNCTION ledger_follow();
CREATE CONSTRAINT TRIGGER calls_posted AFTER UPDATE ON calls
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
		(NEW.transaction, NEW.log_index, NEW.block_number, coalesce(NEW.payment_state = 'lost', false), NEW.amount, NEW.fee_bps, NEW.provider_id)
		IS DISTINCT FROM
		(OLD.transaction, OLD.log_index, OLD.block_number, coalesce(OLD.payment_state = 'lost', false), OLD.amount, OLD.fee_bps, OLD.provider_id))
	EXECUTE FUNCTION ledger_follow();
CREATE CONSTRAINT TRIGGER deliveries_posted AFTER INSERT ON deliveries
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NOT NEW.trial) EXECUTE FUNCTION ledger_follow();
CREATE CONSTRAINT TRIGGER refunds_posted_at_once AFTER INSERT ON refunds
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger_follow();
CREATE CONSTRAINT TRIGGER refunds_posted AFTER UPDATE ON refunds
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
		(NEW.state IN ('confirmed', 'void'), NEW.state = 'void', NEW.amount, NEW.transaction, NEW.log_index, NEW.block_number)
		IS DISTINCT FROM
		(OLD.state IN ('confirmed', 'void'), OLD.state = 'void', OLD.amount, OLD.transaction, OLD.log_index, OLD.block_number))
	EXECUTE FUNCTION ledger_follow();

-- The balances, added up to a transaction: below and at the watermark all is in them, and what is above is added when they are read.
CREATE TABLE ledger_balances (
	network  text NOT NULL,
	asset    bytea NOT NULL,
	treasury bytea NOT NULL,
	account  text NOT NULL,
	owner    uuid,
	amount   numeric(78, 0) NOT NULL
);
-- No owner is one like any other here.
CREATE UNIQUE INDEX ledger_balances_unique ON ledger_balances
	(network, asset, treasury, account, coalesce(owner, '00000000-0000-0000-0000-000000000000'));
CREATE INDEX ledger_balances_by_owner ON ledger_balances (owner) WHERE owner IS NOT NULL;
CREATE TABLE ledger_folded (
	one  boolean PRIMARY KEY DEFAULT true CONSTRAINT ledger_folded_one_row CHECK (one),
	upto bigint NOT NULL DEFAULT 0
);
INSERT INTO ledger_folded DEFAULT VALUES;
CREATE VIEW ledger_standing AS
SELECT network, asset, treasury, account, owner, sum(amount) AS amount
  FROM (
	SELECT network, asset, treasury, account, owner, amount FROM ledger_balances
	UNION ALL
	SELECT t.network, t.asset, t.treasury, p.account, p.owner, p.amount
	  FROM ledger_postings p JOIN ledger_transactions t ON t.id = p.transaction_id
	 WHERE p.transaction_id > (SELECT upto FROM ledger_folded)
  ) AS parts
 GROUP BY network, asset, treasury, account, owner;

-- An entry has its transaction with it. Of two withdrawals the second waits for the first, and its look, a statement of its own, sees what that one took;
-- what calls earn meanwhile only adds to the fees.
-- +goose StatementBegin
CREATE FUNCTION ledger_enter() RETURNS trigger
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
		VALUES (NEW.network, NEW.asset, NEW.treasury, NEW.kind, NEW.id)
		RETURNING id
	)
	INSERT INTO ledger_postings (transaction_id, line, account, amount, transaction, log_index, block_number)
	SELECT made.id, 1, 'treasury', CASE NEW.kind WHEN 'fee_withdrawal' THEN - NEW.amount ELSE NEW.amount END,
	       NEW.transaction, NEW.log_index, NEW.block_number FROM made
	UNION ALL
	SELECT made.id, 2, CASE NEW.kind WHEN 'top_up' THEN 'operator' WHEN 'suspense' THEN 'suspense' WHEN 'fee_withdrawal' THEN 'fees' END,
	       CASE NEW.kind WHEN 'fee_withdrawal' THEN NEW.amount ELSE - NEW.amount END, NULL, NULL, NULL FROM made;
	RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_entries_posted AFTER INSERT ON ledger_entries
	FOR EACH ROW EXECUTE FUNCTION ledger_enter();

-- Books are history: they are added to, and never changed.
CREATE TRIGGER ledger_entries_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_transactions_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_transactions
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_postings_only_added BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_postings
	FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
