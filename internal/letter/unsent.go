package letter

import (
	"context"
	"fmt"
	"time"

	"market/internal/postgres"
)

// The index of what is due has the open ones alone.
const unsentSQL = `
SELECT count(*), coalesce(max(market_now() - n.at), '0')
  FROM provider_deliveries d JOIN provider_notices n ON n.id = d.notice_id WHERE d.sent_at IS NULL AND d.given_up_at IS NULL`

// Unsent is how many letters wait to be sent, and how old the oldest is.
func (Store) Unsent(ctx context.Context, db postgres.DB) (n int64, oldest time.Duration, err error) {
	if err := db.QueryRow(ctx, unsentSQL).Scan(&n, &oldest); err != nil {
		return 0, 0, fmt.Errorf("count unsent letters: %w", err)
	}
	return n, oldest, nil
}
