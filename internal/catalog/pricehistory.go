package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"market/internal/postgres"
)

// pricesShown is how many changes of price a service is shown with, the newest ones.
const pricesShown = 10

// A PriceChange is that an endpoint's price became another one.
type PriceChange struct {
	Method, Path string
	Before, USD  decimal.Decimal
	Since        time.Time
}

// The price that an endpoint was listed with is no change.
const priceChangesSQL = `
SELECT method, path, before::text, price_usd::text, since
  FROM (SELECT e.method, e.path, p.price_usd, p.since, p.revision,
               lag(p.price_usd) OVER (PARTITION BY p.endpoint_id ORDER BY p.revision) AS before
          FROM endpoints e JOIN endpoint_prices p ON p.endpoint_id = e.id
         WHERE e.service_id = $1 AND e.retired_at IS NULL) AS revised
 WHERE before IS NOT NULL
 ORDER BY revision DESC
 LIMIT $2`

// PriceChanges returns the latest changes of the prices of a service's endpoints, the newest first.
func (Store) PriceChanges(ctx context.Context, db postgres.DB, serviceID uuid.UUID) ([]PriceChange, error) {
	rows, err := db.Query(ctx, priceChangesSQL, serviceID, pricesShown)
	if err != nil {
		return nil, fmt.Errorf("read price changes of service %s: %w", serviceID, err)
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (PriceChange, error) {
		var (
			c           PriceChange
			before, usd string
		)
		err := row.Scan(&c.Method, &c.Path, &before, &usd, &c.Since)
		if err == nil {
			c.Before, err = decimal.NewFromString(before)
		}
		if err == nil {
			c.USD, err = decimal.NewFromString(usd)
		}
		c.Since = c.Since.UTC()
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("read price changes of service %s: %w", serviceID, err)
	}
	return changes, nil
}
