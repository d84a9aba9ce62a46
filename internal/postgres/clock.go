package postgres

import (
	"context"
	"fmt"
	"time"
)

const marketNowSQL = `SELECT market_now()`

// MarketNow returns the database's time, the only one that replicas compare with each other.
func MarketNow(ctx context.Context, db DB) (time.Time, error) {
	var now time.Time
	if err := db.QueryRow(ctx, marketNowSQL).Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("market time: %w", err)
	}
	return now.UTC(), nil
}

const serverNowSQL = `SELECT clock_timestamp()`

// ServerNow returns the time of the server's own clock, which tests cannot shift: it is what clocks are compared with.
func ServerNow(ctx context.Context, db DB) (time.Time, error) {
	var now time.Time
	if err := db.QueryRow(ctx, serverNowSQL).Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("the database's clock: %w", err)
	}
	return now.UTC(), nil
}

const shiftSQL = `SELECT (extract(epoch FROM shift) * 1000000)::bigint FROM market_clock`

// ShiftedClock returns how far market_now() is ahead of the server's clock. Only tests move it: a program that handles real money
// refuses to start unless it is zero.
func ShiftedClock(ctx context.Context, db DB) (time.Duration, error) {
	var micros int64
	if err := db.QueryRow(ctx, shiftSQL).Scan(&micros); err != nil {
		return 0, fmt.Errorf("market clock: %w", err)
	}
	return time.Duration(micros) * time.Microsecond, nil
}
