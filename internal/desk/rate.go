package desk

import (
	"context"
	"fmt"
	"time"

	"market/internal/postgres"
)

// window is how long a rate counts.
const window = time.Minute

// Rates counts requests by key, over all replicas.
type Rates struct{}

// Counting is one statement, so that of two replicas neither loses a request. What is over the limit is counted to one above it and no
// further: a client that does not stop must not make the number grow.
const takeSQL = `
INSERT INTO facilitator_rates AS r (key_name, window_start, requests)
VALUES ($1, date_trunc('minute', market_now()), 1)
    ON CONFLICT (key_name) DO UPDATE
   SET requests = CASE WHEN r.window_start < excluded.window_start THEN 1 ELSE least(r.requests, $2) + 1 END,
       window_start = greatest(r.window_start, excluded.window_start)
RETURNING requests, window_start + interval '1 minute' - market_now()`

// Take counts one request of a key and says whether it is within its rate; if it is not, how long until it may ask again.
func (Rates) Take(ctx context.Context, db postgres.DB, k Key) (wait time.Duration, within bool, err error) {
	var requests int
	if err := db.QueryRow(ctx, takeSQL, k.Name, k.PerMinute).Scan(&requests, &wait); err != nil {
		return 0, false, fmt.Errorf("count a request of key %s: %w", k.Name, err)
	}
	return min(max(wait, time.Second), window), requests <= k.PerMinute, nil
}
