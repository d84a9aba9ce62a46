package catalog_test

import (
	"errors"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/capacity"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
)

func TestParseDraft_ReadsACapacityOfWhichEachPartMayBeLeftOut(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]capacity.Limit{
		``:               {},
		`"capacity":{},`: {},
		`"capacity":{"requests_per_second":50,"concurrency":20},`:       {Rate: 500, Places: 20},
		`"capacity":{"requests_per_second":0.1},`:                       {Rate: 1},
		`"capacity":{"concurrency":1},`:                                 {Places: 1},
		`"capacity":{"requests_per_second":10000,"concurrency":10000},`: {Rate: capacity.RateMax, Places: capacity.PlacesMax},
	} {
		d, err := catalog.ParseDraft([]byte(`{"slug":"a","name":"A","base_url":"https://a.example","probe":{"path":"/","statuses":["200"]},`+member+
			`"endpoints":[{"method":"GET","path":"/","price_usd":"1"}]}`), catalog.Rules{})
		if err != nil || d.Capacity != want {
			t.Errorf("%s: %+v, %v, want %+v", member, d.Capacity, err, want)
		}
	}
}

func TestParseDraft_NamesThePartOfACapacityThatIsWrong(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]string{
		`5`:                               "/capacity",
		`null`:                            "/capacity",
		`{"per_day":1}`:                   "/capacity/per_day",
		`{"concurrency":0}`:               "/capacity/concurrency",
		`{"concurrency":10001}`:           "/capacity/concurrency",
		`{"concurrency":1.5}`:             "/capacity/concurrency",
		`{"concurrency":null}`:            "/capacity/concurrency",
		`{"requests_per_second":0}`:       "/capacity/requests_per_second",
		`{"requests_per_second":0.01}`:    "/capacity/requests_per_second",
		`{"requests_per_second":10000.1}`: "/capacity/requests_per_second",
		`{"requests_per_second":"5"}`:     "/capacity/requests_per_second",
		`{"requests_per_second":null}`:    "/capacity/requests_per_second",
	} {
		_, err := catalog.ParseDraft([]byte(`{"slug":"a","name":"A","base_url":"https://a.example","probe":{"path":"/","statuses":["200"]},"capacity":`+member+
			`,"endpoints":[{"method":"GET","path":"/","price_usd":"1"}]}`), catalog.Rules{})
		no, refused := errors.AsType[*refusal.Error](err)
		if !refused || no.Reason != call.InvalidRequest || len(no.Fields) != 1 || no.Fields[0].Name != want {
			t.Errorf("%s: %v, want one problem with %s", member, err, want)
		}
	}
}

func TestStore_KeepsTheCapacityAndEveryReadingHasIt(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	listings := catalog.New(time.Now, 0)
	with, without := draft(t, "with", "/a"), draft(t, "without", "/a")
	with.Capacity = capacity.Limit{Rate: 25, Places: 3}
	made, other := create(t, db, with), create(t, db, without)
	check := func(what string, of catalog.Service, want capacity.Limit) {
		t.Helper()
		found, err := store.Find(t.Context(), db, of.Slug)
		if err != nil {
			t.Fatal(err)
		}
		if err := listings.Load(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		loaded, _ := listings.Current().Service(of.ID)
		if found.Capacity != want || loaded.Capacity != want {
			t.Errorf("%s: found %+v, loaded %+v, want %+v", what, found.Capacity, loaded.Capacity, want)
		}
	}
	if made.Capacity != with.Capacity {
		t.Errorf("made with %+v", made.Capacity)
	}
	check("as declared", made, with.Capacity)
	check("nothing declared", other, capacity.Limit{})
	for _, l := range []capacity.Limit{{Rate: capacity.RateMax}, {Places: capacity.PlacesMax}, {}} {
		if err := store.SetCapacity(t.Context(), db, made.ID, l); err != nil {
			t.Fatal(err)
		}
		check("changed", made, l)
		check("the other, which was not changed", other, capacity.Limit{})
	}
	for _, l := range []capacity.Limit{{Rate: capacity.RateMax + 1}, {Rate: -1}, {Places: capacity.PlacesMax + 1}, {Places: -1}} {
		if err := store.SetCapacity(t.Context(), db, made.ID, l); err == nil {
			t.Errorf("the database keeps %+v", l)
		}
	}
}
