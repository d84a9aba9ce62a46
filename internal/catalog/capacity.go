package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"market/internal/capacity"
	"market/internal/postgres"
)

// capacity reads what a provider declares that its service can take. An absent member, and an object without members, is no limit.
func (f *form) capacity(name string) capacity.Limit {
	v, ok := f.member(name)
	if !ok {
		return capacity.Limit{}
	}
	g, ok := newForm(f.pointer(name), v, f.problems)
	if !ok {
		return capacity.Limit{}
	}
	l := capacity.Limit{Rate: g.rate("requests_per_second"), Places: g.whole("concurrency", 0, 1, capacity.PlacesMax)}
	g.end()
	return l
}

// rate reads calls a second.
func (f *form) rate(name string) capacity.Rate {
	v, ok := f.member(name)
	if !ok {
		return 0
	}
	n, _ := v.(json.Number) // anything else is no rate
	r, err := capacity.ParseRate(string(n))
	if err != nil {
		f.wrong(name, "%s", err)
	}
	return r
}

const setCapacitySQL = `
UPDATE services SET capacity_tenths_per_second = NULLIF($2, 0), capacity_concurrency = NULLIF($3, 0) WHERE id = $1`

// SetCapacity changes what a service is declared to take. It holds for whoever is let in from then on; calls that are under way end.
func (Store) SetCapacity(ctx context.Context, db postgres.DB, serviceID uuid.UUID, l capacity.Limit) error {
	if _, err := db.Exec(ctx, setCapacitySQL, serviceID, int(l.Rate), l.Places); err != nil {
		return fmt.Errorf("set capacity of service %s: %w", serviceID, err)
	}
	return nil
}
