// Package cooldown keeps until when a service rests: the time after a failed delivery of its own doing during which it gets no work.
//
// Times are the database's (market_now()). Only package delivery starts a cooldown, in the transaction that records the delivery, and
// ends one, in that of a review. The Board is a hint for the unpaid gate; what decides a paid call is read by the statement that records its settlement.
package cooldown

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres"
)

// ThrottleMax is the longest Retry-After of a throttling service that we honour.
const ThrottleMax = 10 * time.Minute

// After returns how long a service rests after a delivery; zero where it does not. It rests after every failure of its own doing,
// counted or only flagged, that outside traffic met. A service that throttles says itself for how long, at least base and at most
// ThrottleMax.
func After(o call.Outcome, p call.Party, r call.Reason, from call.Origin, retryAfter, base time.Duration) time.Duration {
	if o != call.Failed || p != call.Service || !from.Counts() {
		return 0
	}
	if r == call.UpstreamThrottled {
		return max(base, min(retryAfter, ThrottleMax))
	}
	return base
}

// Store keeps cooldowns.
type Store struct{}

// A failure while a rest runs does not extend it. One after a rest starts another, however long ago its call was asked: a service that fails now is
// given no more work now, also where the strike folds into an earlier one.
const startSQL = `
INSERT INTO cooldowns (service_id, until, started_by)
VALUES ($1, market_now() + $3::interval, $2)
ON CONFLICT (service_id) DO UPDATE
   SET until = excluded.until, started_by = excluded.started_by
 WHERE cooldowns.until <= market_now()`

// Start lets a service rest from now on, unless it does already.
func (Store) Start(ctx context.Context, db postgres.DB, service, delivery uuid.UUID, rest time.Duration) error {
	if _, err := db.Exec(ctx, startSQL, service, delivery, rest); err != nil {
		return fmt.Errorf("start cooldown of service %s: %w", service, err)
	}
	return nil
}

const endSQL = `
UPDATE cooldowns SET until = market_now() WHERE service_id = $1 AND until > market_now()`

// End lets a service have work again, and says whether it rested. Its row must be locked by the same transaction.
func (Store) End(ctx context.Context, db postgres.DB, service uuid.UUID) (bool, error) {
	tag, err := db.Exec(ctx, endSQL, service)
	if err != nil {
		return false, fmt.Errorf("end cooldown of service %s: %w", service, err)
	}
	return tag.RowsAffected() == 1, nil
}
