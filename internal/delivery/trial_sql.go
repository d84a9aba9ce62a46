package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/postgres"
)

// One statement takes a trial call of the day from all three allowances, or from none. The row of the day comes first, and the other two follow from it,
// so whoever takes or gives back one of an endpoint's trials waits for whoever does before it, and no two wait for each other. What is taken is decided
// on the rows as they are then: a day that is used up takes nothing, by its condition; and a network or wallet that is breaks its constraint (*_within),
// which undoes the whole statement, the day's place with it. before is only a snapshot, which spares the common refusals a row: it may be older than
// the lock. None is taken where the service would not be asked. The day is UTC.
const takeTrialSQL = `
WITH service AS (
	SELECT s.state = 'listed' AND e.retired_at IS NULL AS listed, coalesce(c.until > market_now(), false) AS cooling,
	       greatest(coalesce(c.until - market_now(), '0'), '0') AS rest, market_now() AS now, (market_now() AT TIME ZONE 'UTC')::date AS day
	  FROM services s JOIN endpoints e ON e.id = $2 LEFT JOIN cooldowns c ON c.service_id = s.id
	 WHERE s.id = $1
), before AS (
	SELECT coalesce((SELECT used FROM trial_days t WHERE t.endpoint_id = $2 AND t.day = service.day), 0) AS of_day,
	       coalesce((SELECT used FROM trial_networks t WHERE t.endpoint_id = $2 AND t.day = service.day AND t.network = $5::cidr), 0) AS of_network,
	       coalesce((SELECT used FROM trial_wallets t WHERE t.endpoint_id = $2 AND t.day = service.day AND t.wallet = $6::bytea), 0) AS of_wallet
	  FROM service
), taken AS (
	INSERT INTO trial_days (endpoint_id, day, used)
	SELECT $2, service.day, 1 FROM service, before
	 WHERE service.listed AND NOT service.cooling AND before.of_day < $3 AND before.of_network < $4 AND before.of_wallet < $4
	ON CONFLICT (endpoint_id, day) DO UPDATE SET used = trial_days.used + 1 WHERE trial_days.used < $3
	RETURNING day, used
), by_network AS (
	INSERT INTO trial_networks (endpoint_id, day, network, used, allowed)
	SELECT $2, taken.day, $5::cidr, 1, $4 FROM taken
	ON CONFLICT (endpoint_id, day, network) DO UPDATE SET used = trial_networks.used + 1, allowed = excluded.allowed
	RETURNING used
), by_wallet AS (
	INSERT INTO trial_wallets (endpoint_id, day, wallet, used, allowed)
	SELECT $2, taken.day, $6::bytea, 1, $4 FROM taken WHERE $6::bytea IS NOT NULL
	ON CONFLICT (endpoint_id, day, wallet) DO UPDATE SET used = trial_wallets.used + 1, allowed = excluded.allowed
	RETURNING used
)
SELECT service.listed, service.cooling, service.rest, service.now, EXISTS (SELECT 1 FROM taken),
       coalesce((SELECT used FROM taken), before.of_day), coalesce((SELECT used FROM by_network), before.of_network),
       coalesce((SELECT used FROM by_wallet), before.of_wallet)
  FROM service, before`

// trialRaces is how often a trial call is tried to be taken that was lost to another one of the same caller. The next look sees what that one took, so
// more than two are needed only where calls are given back in between.
const trialRaces = 5

// takeTrial takes one of an endpoint's trial calls of today for a caller. taken is false where none is left for it, or where the standing says why not.
func takeTrial(ctx context.Context, db postgres.DB, service, endpoint uuid.UUID, l trialLimits, who trialCaller) (t takenTrial, err error) {
	for range trialRaces {
		err = db.QueryRow(ctx, takeTrialSQL, service, endpoint, l.perDay, l.perCaller, who.network, who.walletBytes()).
			Scan(&t.listed, &t.cooling, &t.rest, &t.askedAt, &t.taken, &t.use.day, &t.use.network, &t.use.wallet)
		if !overdrawn(err) {
			break
		}
	}
	if err != nil {
		return takenTrial{}, fmt.Errorf("take trial call of endpoint %s: %w", endpoint, err)
	}
	t.left = l.left(t.use)
	return t, nil
}

// overdrawn says whether a statement was undone because it would have given a caller more than it has.
func overdrawn(err error) bool {
	constraint, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (constraint.ConstraintName == "trial_networks_within" || constraint.ConstraintName == "trial_wallets_within")
}

// walletBytes is the wallet as the database keeps it; nil where there is none.
func (c trialCaller) walletBytes() []byte {
	if c.wallet == (common.Address{}) {
		return nil
	}
	return c.wallet[:]
}

// The order is that of takeTrialSQL: the day's row first.
const giveTrialBackSQL = `
WITH given AS (
	UPDATE trial_days SET used = used - 1
	 WHERE endpoint_id = $1 AND day = ($2::timestamptz AT TIME ZONE 'UTC')::date AND used > 0
	RETURNING day
), by_network AS (
	UPDATE trial_networks t SET used = t.used - 1 FROM given
	 WHERE t.endpoint_id = $1 AND t.day = given.day AND t.network = $3::cidr AND t.used > 0
)
UPDATE trial_wallets t SET used = t.used - 1 FROM given
 WHERE t.endpoint_id = $1 AND t.day = given.day AND t.wallet = $4::bytea AND t.used > 0`

// What a caller has given back altogether leaves no row: else those who find a service full would leave one each, as many as they like. It is a statement
// of its own in the same transaction, which holds the row of the day by then: so it sees the rows as they are, and nobody takes one meanwhile.
const dropUnusedTrialsSQL = `
WITH by_network AS (
	DELETE FROM trial_networks
	 WHERE endpoint_id = $1 AND day = ($2::timestamptz AT TIME ZONE 'UTC')::date AND network = $3::cidr AND used = 0
)
DELETE FROM trial_wallets
 WHERE endpoint_id = $1 AND day = ($2::timestamptz AT TIME ZONE 'UTC')::date AND wallet = $4::bytea AND used = 0`

// giveTrialBack gives back a trial call that was taken for a caller at an instant of market time.
func giveTrialBack(ctx context.Context, db *pgxpool.Pool, endpoint uuid.UUID, taken time.Time, who trialCaller) error {
	var batch pgx.Batch // which is one transaction
	batch.Queue(giveTrialBackSQL, endpoint, taken, who.network, who.walletBytes())
	batch.Queue(dropUnusedTrialsSQL, endpoint, taken, who.network, who.walletBytes())
	if err := db.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("give back trial call of endpoint %s: %w", endpoint, err)
	}
	return nil
}

const trialsUsedSQL = `
SELECT e.id, market_now(), coalesce(d.used, 0), coalesce(n.used, 0)
  FROM unnest($1::uuid[]) AS e (id)
  LEFT JOIN trial_days d ON d.endpoint_id = e.id AND d.day = (market_now() AT TIME ZONE 'UTC')::date
  LEFT JOIN trial_networks n ON n.endpoint_id = e.id AND n.day = (market_now() AT TIME ZONE 'UTC')::date AND n.network = $2::cidr`

// trialsUsed returns what was used today of the trial calls of endpoints, by everybody and by one network, and when that was so.
func trialsUsed(ctx context.Context, db postgres.DB, of map[uuid.UUID]trialLimits, network netip.Prefix) (map[uuid.UUID]trialUse, time.Time, error) {
	rows, err := db.Query(ctx, trialsUsedSQL, slices.Collect(maps.Keys(of)), network)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read used trial calls: %w", err)
	}
	var (
		id   uuid.UUID
		now  time.Time
		use  trialUse
		uses = map[uuid.UUID]trialUse{}
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &now, &use.day, &use.network}, func() error {
		uses[id] = use
		return nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read used trial calls: %w", err)
	}
	return uses, now, nil
}

const (
	forgetTrialDaysSQL = `
DELETE FROM trial_days WHERE (endpoint_id, day) IN
	(SELECT endpoint_id, day FROM trial_days WHERE day < (market_now() AT TIME ZONE 'UTC')::date ORDER BY day LIMIT $1 FOR UPDATE SKIP LOCKED)`
	forgetTrialNetworksSQL = `
DELETE FROM trial_networks WHERE (endpoint_id, day, network) IN
	(SELECT endpoint_id, day, network FROM trial_networks WHERE day < (market_now() AT TIME ZONE 'UTC')::date ORDER BY day LIMIT $1 FOR UPDATE SKIP LOCKED)`
	forgetTrialWalletsSQL = `
DELETE FROM trial_wallets WHERE (endpoint_id, day, wallet) IN
	(SELECT endpoint_id, day, wallet FROM trial_wallets WHERE day < (market_now() AT TIME ZONE 'UTC')::date ORDER BY day LIMIT $1 FOR UPDATE SKIP LOCKED)`
)

// forgetTrials deletes up to limit rows of each kind that count the trial calls of days that are over.
func forgetTrials(ctx context.Context, db *pgxpool.Pool, limit int) error {
	var batch pgx.Batch
	batch.Queue(forgetTrialDaysSQL, limit)
	batch.Queue(forgetTrialNetworksSQL, limit)
	batch.Queue(forgetTrialWalletsSQL, limit)
	if err := db.SendBatch(ctx, &batch).Close(); err != nil {
		return fmt.Errorf("forget trial calls of past days: %w", err)
	}
	return nil
}
