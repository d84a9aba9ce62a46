package catalog

import (
	"context"
	"fmt"

	"market/internal/postgres"
)

const countStatesSQL = `SELECT state, count(*) FROM services GROUP BY state`

// CountStates says how many services are in each state; a state that none is in is left out.
func (Store) CountStates(ctx context.Context, db postgres.DB) (map[State]int, error) {
	rows, err := db.Query(ctx, countStatesSQL)
	if err != nil {
		return nil, fmt.Errorf("count services by state: %w", err)
	}
	defer rows.Close()
	counts := map[State]int{}
	for rows.Next() {
		var state State
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return nil, fmt.Errorf("count services by state: %w", err)
		}
		counts[state] = n
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("count services by state: %w", err)
	}
	return counts, nil
}
