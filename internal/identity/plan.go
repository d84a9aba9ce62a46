package identity

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"market/internal/postgres"
)

const plansLeftSQL = `
SELECT plan, count(*) FROM accounts WHERE plan <> '' AND plan <> ALL ($1) GROUP BY plan ORDER BY plan LIMIT 100`

// PlansLeft returns how many accounts are on each plan that is not among these: the operator took it out of the table, and they have the first plan until an
// admin puts them on another.
func (Store) PlansLeft(ctx context.Context, db postgres.DB, plans []string) (map[string]int, error) {
	rows, err := db.Query(ctx, plansLeftSQL, plans)
	if err != nil {
		return nil, fmt.Errorf("count accounts on plans that are gone: %w", err)
	}
	left := map[string]int{}
	var (
		name string
		n    int
	)
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { left[name] = n; return nil }); err != nil {
		return nil, fmt.Errorf("count accounts on plans that are gone: %w", err)
	}
	return left, nil
}
