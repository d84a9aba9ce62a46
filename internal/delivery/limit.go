package delivery

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
)

// A RefundPolicy says when a payer's refunded calls at one endpoint are too many.
type RefundPolicy struct {
	Count  int           // refunded calls
	Window time.Duration // within which they count, and the first rest
}

// refundRestMax is where the doubling of a payer's rest ends, and how far back calls are looked at.
const refundRestMax = 24 * time.Hour

// An ending is how one call of a payer at an endpoint ended, for the refund limit.
type ending struct {
	at     time.Time
	served bool
}

// restsUntil returns until when a payer is refused at an endpoint: the zero time where it never was. Count refunded calls within Window,
// and fewer served than refunded, start a rest of Window; each further offence after a rest doubles it, up to a day. Calls that
// were already under way when a rest began belong to the offence that began it. endings are in order of time.
func (p RefundPolicy) restsUntil(endings []ending) time.Time {
	var (
		until    time.Time
		rest     = p.Window
		window   []ending
		refunded int // of the window
	)
	for _, e := range endings {
		if e.at.Before(until) {
			continue
		}
		window = append(window, e)
		if !e.served {
			refunded++
		}
		for window[0].at.Before(e.at.Add(-p.Window)) {
			if !window[0].served {
				refunded--
			}
			window = window[1:]
		}
		if refunded >= p.Count && len(window)-refunded < refunded {
			until, window, refunded = e.at.Add(rest), nil, 0
			rest = min(2*rest, refundRestMax)
		}
	}
	return until
}

// Only failures of the service, its own refusals, and streams that the payer held up until they broke count: what we, the cooldown or the rail
// refused is not the payer's provocation. A stream that its payer left was neither refunded nor served to its end.
const endsSQL = `((outcome = 'served' AND reason <> 'caller_left') OR (outcome = 'failed' AND (party = 'service' OR reason = 'caller_stalled')) OR (outcome = 'refused' AND reason = 'rejected_by_service'))`

const endingsSQL = `
SELECT recorded_at, outcome = 'served'
  FROM deliveries
 WHERE payer = $1 AND endpoint_id = $2 AND recorded_at > market_now() - $3::interval AND NOT trial
   AND ` + endsSQL + `
 ORDER BY recorded_at DESC LIMIT 2000`

// The common payer has no refund in a day: one index probe tells.
const refundedSQL = `
SELECT count(*) >= $4
  FROM (SELECT 1 FROM deliveries
	 WHERE payer = $1 AND endpoint_id = $2 AND recorded_at > market_now() - $3::interval
	   AND outcome IN ('failed', 'refused') AND asked
	 LIMIT $4) refunded`

// refundRest returns how long a payer is still refused at an endpoint; zero where it is not.
func (p RefundPolicy) refundRest(ctx context.Context, db postgres.DB, payer common.Address, endpoint uuid.UUID) (time.Duration, error) {
	var suspect bool
	if err := db.QueryRow(ctx, refundedSQL, payer[:], endpoint, refundRestMax, p.Count).Scan(&suspect); err != nil {
		return 0, fmt.Errorf("count refunds of payer %s: %w", payer, err)
	}
	if !suspect {
		return 0, nil
	}
	endings, err := readEndings(db.Query(ctx, endingsSQL, payer[:], endpoint, refundRestMax))
	if err != nil {
		return 0, fmt.Errorf("read calls of payer %s: %w", payer, err)
	}
	return p.restAfter(ctx, db, endings)
}

// readEndings reads how calls ended, the newest first.
func readEndings(rows pgx.Rows, err error) ([]ending, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e ending, err error) {
		err = row.Scan(&e.at, &e.served)
		return e, err
	})
}

// restAfter returns how long whoever made calls that ended so, the newest first, is still refused.
func (p RefundPolicy) restAfter(ctx context.Context, db postgres.DB, endings []ending) (time.Duration, error) {
	now, err := postgres.MarketNow(ctx, db)
	if err != nil {
		return 0, err
	}
	slices.Reverse(endings)
	return max(0, p.restsUntil(endings).Sub(now)), nil
}

// A trial has no payer, so it is the network of an address that is refused, by what became of the trials from there: else whoever is refused with its
// wallet would go on provoking failures for nothing. Only what counts as evidence is looked at, and of a service that is tried very much the newest.
const trialEndingsSQL = `
SELECT recorded_at, outcome = 'served'
  FROM (SELECT recorded_at, outcome, reason, party, endpoint_id, source FROM deliveries
         WHERE service_id = $1 AND trial AND recorded_at > market_now() - $4::interval
           AND origin IN ('external', 'unattributed') AND (asked OR outcome <> 'refused')
         ORDER BY recorded_at DESC LIMIT 2000) newest
 WHERE endpoint_id = $2 AND source <<= $3 AND ` + endsSQL + `
 ORDER BY recorded_at DESC`

// Nearly everybody has provoked nothing: one index probe tells, before thousands of trials are read.
const provokedSQL = `
SELECT count(*) >= $4
  FROM (SELECT 1 FROM deliveries d
         WHERE endpoint_id = $1 AND ` + networkSQL + ` = $2::cidr AND recorded_at > market_now() - $3::interval
           AND trial AND outcome IN ('failed', 'refused') AND asked
         LIMIT $4) failed`

// trialRest returns how long the network of an address gets no trial calls of an endpoint; zero where it does.
func (p RefundPolicy) trialRest(ctx context.Context, db postgres.DB, service, endpoint uuid.UUID, source netip.Addr) (time.Duration, error) {
	var suspect bool
	if err := db.QueryRow(ctx, provokedSQL, endpoint, call.Network(source), refundRestMax, p.Count).Scan(&suspect); err != nil {
		return 0, fmt.Errorf("count failed trials from %s: %w", call.Network(source), err)
	}
	if !suspect {
		return 0, nil
	}
	endings, err := readEndings(db.Query(ctx, trialEndingsSQL, service, endpoint, call.Network(source), refundRestMax))
	if err != nil {
		return 0, fmt.Errorf("read trial calls from %s: %w", call.Network(source), err)
	}
	return p.restAfter(ctx, db, endings)
}
