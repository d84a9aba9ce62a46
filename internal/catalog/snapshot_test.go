package catalog_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

func load(t *testing.T, c *catalog.Catalog, db postgres.DB) *catalog.Snapshot {
	t.Helper()
	if err := c.Load(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return c.Current()
}

func marketNow(t *testing.T, db postgres.DB) time.Time {
	t.Helper()
	now, err := postgres.MarketNow(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func TestCatalog_Current_IsEmptyBeforeTheFirstLoad(t *testing.T) {
	t.Parallel()
	_, no := catalog.New(time.Now, time.Minute).Current().Route("weather", "GET", "/")
	if no == nil || no.Reason != call.NotFound {
		t.Errorf("refusal = %v, want not_found", no)
	}
}

func TestCatalog_Load_ReplacesTheWholeAndLeavesOldSnapshotsAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := catalog.New(time.Now, 10*time.Minute)
	s := create(t, db, draft(t, "weather", "/a"))
	old := load(t, c, db)
	if _, err := store.Delist(t.Context(), db, s.ID, "three strikes"); err != nil {
		t.Fatal(err)
	}
	create(t, db, draft(t, "maps", "/b"))
	now := load(t, c, db)

	if _, no := old.Route("maps", "POST", "/b"); no == nil {
		t.Error("the old snapshot knows the new service")
	}
	if _, no := now.Route("maps", "POST", "/b"); no != nil {
		t.Errorf("the new snapshot does not know the new service: %v", no)
	}
	before, no := old.Route("weather", "POST", "/a")
	if no != nil || before.Listed() != nil {
		t.Errorf("the old snapshot has the service as %v, %v, want listed", before.Service, no)
	}
	after, no := now.Route("weather", "POST", "/a")
	if no != nil || after.Listed() == nil || after.Listed().Reason != call.NotListed {
		t.Errorf("the new snapshot has the service as %v, %v, want delisted", after.Service, no)
	}
	if got, ok := now.Endpoint(after.Endpoint.ID); !ok || got != after.Endpoint {
		t.Errorf("Endpoint by id = %v, %v", got, ok)
	}
	if got, ok := now.Service(s.ID); !ok || got != after.Service {
		t.Errorf("Service by id = %v, %v", got, ok)
	}
	if err := after.Endpoint.CheckInput(catalog.Input{Body: []byte(`{}`)}); reasonOf(err) != call.InputInvalid {
		t.Errorf("schema after a reload: %v, want input_invalid", err)
	}
}

func TestCatalog_Load_ChecksWithTheSchemaThatIsStoredNow(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := catalog.New(time.Now, time.Minute)
	e := create(t, db, draft(t, "weather", "/a")).Endpoints[0]
	input := catalog.Input{Body: []byte(`{"city":"Lima"}`)}
	for _, step := range []struct {
		schema string
		want   call.Reason
	}{
		{`{"required":["city"]}`, ""},
		{`{"required":["country"]}`, call.InputInvalid},
		{`{"type":5}`, ""}, // broken, so nobody gets as far as a check
		{`{"required":["city"]}`, ""},
	} {
		if _, err := db.Exec(t.Context(), `UPDATE endpoints SET input_schema = $2 WHERE id = $1`, e.ID, step.schema); err != nil {
			t.Fatal(err)
		}
		got, _ := load(t, c, db).Endpoint(e.ID)
		if got.Broken != "" {
			continue
		}
		if reason := reasonOf(got.CheckInput(input)); reason != step.want {
			t.Errorf("%s: reason = %q, want %q", step.schema, reason, step.want)
		}
	}
}

func TestCatalog_Load_RetiredIsKnownForAMonth(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := catalog.New(time.Now, 10*time.Minute)
	s := create(t, db, draft(t, "weather", "/a"))
	other := create(t, db, draft(t, "maps", "/a", "/b"))
	if _, err := store.Retire(t.Context(), db, s.ID, catalog.AdminToken, "withdrawn"); err != nil {
		t.Fatal(err)
	}
	if !retireEndpoint(t, db, other, other.Endpoints[0].ID) {
		t.Fatal("the endpoint was retired before")
	}
	for _, slug := range []string{"weather", "maps"} {
		target, no := load(t, c, db).Route(slug, "POST", "/a")
		if no != nil || target.Listed() == nil {
			t.Errorf("%s: refusal = %v, want a target that is not for sale", slug, no)
		}
	}
	pgtest.Shift(t, db, 31*24*time.Hour)
	for _, slug := range []string{"weather", "maps"} {
		if _, no := load(t, c, db).Route(slug, "POST", "/a"); no == nil || no.Reason != call.NotFound {
			t.Errorf("%s after a month: refusal = %v, want not_found", slug, no)
		}
	}
	if _, no := c.Current().Route("maps", "POST", "/b"); no != nil {
		t.Errorf("the endpoint on the shelf: %v", no)
	}
}

func TestCatalog_Load_ABrokenRowDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, slug := range []string{"a", "b", "c", "d", "e"} {
		create(t, db, draft(t, slug, "/x", "/y"))
	}
	for _, sql := range []string{
		`UPDATE endpoints SET input_schema = '{"type": 5}' WHERE path = '/x' AND service_id = (SELECT id FROM services WHERE slug = 'a')`,
		`UPDATE endpoints SET output_schema = 'null' WHERE path = '/x' AND service_id = (SELECT id FROM services WHERE slug = 'b')`,
		`UPDATE services SET probe_statuses = '' WHERE slug = 'c'`,
		`UPDATE services SET base_url = '' WHERE slug = 'd'`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := load(t, catalog.New(time.Now, time.Minute), db)
	for path, want := range map[string]string{"/x": "----+", "/y": "++--+"} {
		got := ""
		for _, slug := range []string{"a", "b", "c", "d", "e"} {
			target, no := snapshot.Route(slug, "POST", path)
			switch {
			case no != nil:
				got += "?"
			case target.Listed() != nil:
				got += "-"
			default:
				got += "+"
			}
		}
		if got != want {
			t.Errorf("%s of a to e for sale: %s, want %s", path, got, want)
		}
	}
}

func TestCatalog_Load_AnOldPriceIsAcceptedForTheQuoteValidity(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := catalog.New(time.Now, 10*time.Minute)
	e := create(t, db, draft(t, "weather", "/a")).Endpoints[0]
	reprice(t, db, "weather", e, "0.003")
	pgtest.Shift(t, db, 5*time.Minute)
	reprice(t, db, "weather", e, "0.004")

	got, _ := load(t, c, db).Endpoint(e.ID)
	if prices := usd(got.Prices); prices != "0.004 0.003 0.002" {
		t.Fatalf("prices = %s, want the current one first", prices)
	}
	oldest, newest := got.Prices[2], got.Prices[0]
	for offset, want := range map[time.Duration]string{
		-time.Microsecond: "0.004 0.003 0.002",
		0:                 "0.004 0.003",
		time.Microsecond:  "0.004 0.003",
	} {
		if prices := usd(got.Acceptable(oldest.Until.Add(offset))); prices != want {
			t.Errorf("%v from the end: acceptable = %s, want %s", offset, prices, want)
		}
	}
	if until := marketNow(t, db).Add(5 * time.Minute); oldest.Until.After(until) || oldest.Until.Before(until.Add(-time.Minute)) {
		t.Errorf("the oldest price is accepted until %v, want about %v", oldest.Until, until)
	}
	if !newest.Until.IsZero() {
		t.Errorf("the current price ends at %v", newest.Until)
	}

	pgtest.Shift(t, db, 6*time.Minute)
	got, _ = load(t, c, db).Endpoint(e.ID)
	if prices := usd(got.Prices); prices != "0.004 0.003" {
		t.Errorf("prices after 11 minutes = %s, want 0.004 0.003", prices)
	}
}

func usd(prices []catalog.Price) string {
	text := ""
	for i, p := range prices {
		if i > 0 {
			text += " "
		}
		text += p.USD.String()
	}
	return text
}

func TestSnapshot_MarketNow_FollowsTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	local := time.Now().Add(-48 * time.Hour) // a clock that is two days late
	c := catalog.New(func() time.Time { return local }, time.Minute)
	pgtest.Shift(t, db, time.Hour)
	before := marketNow(t, db)
	snapshot := load(t, c, db)
	after := marketNow(t, db)
	if got := snapshot.MarketNow(local); got.Before(before) || got.After(after) {
		t.Errorf("market time = %v, want from %v to %v", got, before, after)
	}
}

func TestCatalog_Load_KeepsTheOldSnapshotAfterAnError(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := catalog.New(time.Now, time.Minute)
	create(t, db, draft(t, "weather", "/a"))
	load(t, c, db)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Load(ctx, db); err == nil {
		t.Error("a load without a database succeeds")
	}
	if _, no := c.Current().Route("weather", "POST", "/a"); no != nil {
		t.Errorf("after the error: %v", no)
	}
}

func TestCatalog_Load_AndReadersDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := catalog.New(time.Now, time.Minute)
	create(t, db, draft(t, "weather", "/a"))
	load(t, c, db)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if err := c.Load(t.Context(), db); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				target, no := c.Current().Route("weather", "POST", "/a")
				if no != nil {
					t.Error(no)
					return
				}
				if err := target.Endpoint.CheckInput(catalog.Input{Body: []byte(`{"city":"Lima"}`)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
