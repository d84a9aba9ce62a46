package desk

import (
	"context"
	"fmt"
	"time"

	"market/internal/chain"
	"market/internal/postgres"
)

// Sales counts how often each payment was told yes. The official servers verify a payment, do the work, and settle: a buyer that sends one
// payment ten times at once has all ten verified before the first settles. A facilitator that then said yes ten times, because the transfer
// is there, would have the seller give ten answers for one payment. So of several sales that a payment was verified for one settles, and a
// sale that lost its answer may ask again.
//
// A server in x402's flow "upfront" settles, and then does the work. It verifies nothing and remembers nothing, so each of its requests is a sale.
type Sales struct{}

// A count stops far below what the column takes: whoever asks for ever must not make a statement fail.
const verifiedSQL = `
INSERT INTO facilitator_sales AS s (network, asset, payer, nonce, verified, settled)
VALUES ($1, $2, $3, $4, 1, 0)
    ON CONFLICT (network, asset, payer, nonce) DO UPDATE
   SET verified = least(s.verified + 1, 1000), touched_at = market_now()`

// Verified counts a yes of /verify, before it is said.
func (Sales) Verified(ctx context.Context, db postgres.DB, network string, s chain.Signed) error {
	if _, err := db.Exec(ctx, verifiedSQL, network, s.Asset[:], s.From[:], s.Nonce[:]); err != nil {
		return fmt.Errorf("count verification of %s: %w", s.Nonce, err)
	}
	return nil
}

// Counting and judging are one statement, so that of two sales that settle at once one is the first. An upfront sale that is the first counts
// as one that was verified, so that no other sale of the payment is told yes after it.
const settledSQL = `
INSERT INTO facilitator_sales AS s (network, asset, payer, nonce, verified, settled)
VALUES ($1, $2, $3, $4, $5::boolean::integer, 1)
    ON CONFLICT (network, asset, payer, nonce) DO UPDATE
   SET verified = least(s.verified + ($5::boolean AND s.settled = 0)::integer, 1000), settled = least(s.settled + 1, 1000), touched_at = market_now()
RETURNING settled = 1 OR verified <= 1 AND NOT $5::boolean`

// Settled counts a yes of /settle, before it is said, and tells whether it may be said: to the first that asks, and, unless it is upfront, again
// as long as there is one sale only.
func (Sales) Settled(ctx context.Context, db postgres.DB, network string, s chain.Signed, upfront bool) (may bool, err error) {
	if err := db.QueryRow(ctx, settledSQL, network, s.Asset[:], s.From[:], s.Nonce[:], upfront).Scan(&may); err != nil {
		return false, fmt.Errorf("count settlement of %s: %w", s.Nonce, err)
	}
	return may, nil
}

const (
	// rememberFor is longer than any sale takes from its verification to its settlement.
	rememberFor = 24 * time.Hour
	forgetMax   = 10_000 // rows of one statement
)

const forgetSQL = `
DELETE FROM facilitator_sales
 WHERE (network, asset, payer, nonce) IN (
	SELECT network, asset, payer, nonce FROM facilitator_sales WHERE settled = 0 AND touched_at < market_now() - $1::interval ORDER BY touched_at LIMIT $2)`

// Forget removes rows of payments that nobody settled in time, and says whether there may be others. One that settled is never forgotten: as
// long as the chain tells of its transfer, it can be shown to another sale.
func (Sales) Forget(ctx context.Context, db postgres.DB) (more bool, err error) {
	tag, err := db.Exec(ctx, forgetSQL, rememberFor, forgetMax)
	if err != nil {
		return false, fmt.Errorf("forget old sales: %w", err)
	}
	return tag.RowsAffected() == forgetMax, nil
}

// tidyEvery is the pause between two rounds of Tidy, tidyTime what one statement may take.
const (
	tidyEvery = 10 * time.Minute
	tidyTime  = 30 * time.Second
)

// Tidy forgets old sales until the context ends. Every replica may run it.
func (d *Desk) Tidy(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		for more := true; more && ctx.Err() == nil; {
			limited, cancel := context.WithTimeout(ctx, tidyTime)
			var err error
			if more, err = d.sales.Forget(limited, d.db); err != nil && ctx.Err() == nil {
				d.log.Warn().Err(err).Msg("tidy")
			}
			cancel()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
