// Package cooldown keeps until when a service rests: the time after a failed delivery of its own doing during which it gets no work.
//
// Times are the database's (market_now()). Only package delivery starts a cooldown, in the transaction that records the delivery. The
// Board is a hint for the unpaid gate; what decides a paid call is read by the statement that records its settlement.
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

// A failure of a call that was asked before the current rest ended belongs to the incident that started it and does not extend it.
const startSQL = `
INSERT INTO cooldowns (service_id, until, started_by)
VALUES ($1, market_now() + $4::interval, $2)
ON CONFLICT (service_id) DO UPDATE
   SET until = excluded.until, started_by = excluded.started_by
 WHERE cooldowns.until <= $3`

// Start lets a service rest from now on, unless the failed call was asked before its current rest ended.
func (Store) Start(ctx context.Context, db postgres.DB, service, delivery uuid.UUID, askedAt time.Time, rest time.Duration) error {
	if _, err := db.Exec(ctx, startSQL, service, delivery, askedAt, rest); err != nil {
		return fmt.Errorf("start cooldown of service %s: %w", service, err)
	}
	return nil
}
