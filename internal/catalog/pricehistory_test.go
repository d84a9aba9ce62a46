package catalog_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
)

func TestStore_PriceChanges_AreTheLatestOfWhatIsOnTheShelf(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/a", "/b", "/gone"))
	reprice := func(endpoint uuid.UUID, usd string) {
		t.Helper()
		if err := inTx(t, db, func(tx pgx.Tx) error {
			_, err := store.Reprice(t.Context(), tx, endpoint, decimal.RequireFromString(usd))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	changes := func() []catalog.PriceChange {
		t.Helper()
		changes, err := store.PriceChanges(t.Context(), db, s.ID)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	if got := changes(); len(got) != 0 {
		t.Errorf("a price that never changed: %+v", got)
	}
	reprice(s.Endpoints[0].ID, "0.003")
	reprice(s.Endpoints[2].ID, "0.009")
	reprice(s.Endpoints[1].ID, "0.001")
	reprice(s.Endpoints[0].ID, "0.004")
	if _, err := store.RetireEndpoint(t.Context(), db, s.Endpoints[2].ID); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes() {
		got = append(got, c.Method+" "+c.Path+" "+c.Before.String()+" "+c.USD.String())
		if c.Since.IsZero() {
			t.Errorf("%+v has no time", c)
		}
	}
	want := []string{"POST /a 0.003 0.004", "POST /b 0.002 0.001", "POST /a 0.002 0.003"}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%q, want %q", got, want)
	}
	for _, usd := range []string{"0.01", "0.02", "0.03", "0.04", "0.05", "0.06", "0.07", "0.08", "0.09"} {
		reprice(s.Endpoints[1].ID, usd)
	}
	if got := changes(); len(got) != 10 || got[0].USD.String() != "0.09" {
		t.Errorf("%d changes, the newest to %s", len(got), got[0].USD)
	}
}
