package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/plan"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
)

// planned has plans of little, so that a test reaches the end of them.
var planned = catalog.Store{Plans: plan.Table{
	{Name: "small", Title: "Small", Limits: plan.Limits{Listings: 2, Endpoints: 2, TrialCallsPerDay: 3}},
	{Name: "large", Title: "Large", Limits: plan.Limits{Listings: 3, Endpoints: 3, TrialCallsPerDay: 4}},
}}

func account(t *testing.T, db *pgxpool.Pool, plan string) uuid.UUID {
	t.Helper()
	id := call.NewID()
	const newSQL = `INSERT INTO accounts (id, wallet, plan) VALUES ($1, $2, $3)`
	if _, err := db.Exec(t.Context(), newSQL, id, append(id[:], 0, 0, 0, 0), plan); err != nil {
		t.Fatal(err)
	}
	return id
}

func setPlan(t *testing.T, db *pgxpool.Pool, account uuid.UUID, plan string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), `UPDATE accounts SET plan = $2 WHERE id = $1`, account, plan); err != nil {
		t.Fatal(err)
	}
}

func owned(t *testing.T, db *pgxpool.Pool, owner uuid.UUID, d catalog.Draft) (s catalog.Service, err error) {
	t.Helper()
	d.Owner = owner
	err = inTx(t, db, func(tx pgx.Tx) error {
		s, err = planned.Create(t.Context(), tx, d)
		return err
	})
	return s, err
}

func trials(t *testing.T, slug string, n int) catalog.Draft {
	t.Helper()
	d := draft(t, slug, "/a")
	d.Endpoints[0].TrialCallsPerDay = n
	return d
}

// wantLimit wants what meets a limit to name it, the plan and the next one.
func wantLimit(t *testing.T, when string, err error, key plan.Key, on, next, text string) {
	t.Helper()
	no, refused := errors.AsType[*refusal.Error](err)
	if !refused || no.Reason != call.PlanLimit || no.Plan == nil {
		t.Errorf("%s: %v, want that it is refused for the plan", when, err)
		return
	}
	if no.Plan.Limit != string(key) || no.Plan.Plan != on || (no.Plan.Next == nil) != (next == "") || no.Plan.Next != nil && no.Plan.Next.Name != next || no.Detail != text {
		t.Errorf("%s: %q with %+v, want %q", when, no.Detail, no.Plan, text)
	}
}

func TestStore_Create_APlanHasSoManyListingsAndNoneMore(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	owner, other := account(t, db, ""), account(t, db, "")
	list := func(of uuid.UUID, slug string) (catalog.Service, error) {
		return owned(t, db, of, draft(t, slug, "/a"))
	}
	first, err := list(owner, "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := list(owner, "two"); err != nil {
		t.Fatalf("the last one that the plan has: %v", err)
	}
	_, err = list(owner, "three")
	wantLimit(t, "one above", err, plan.KeyListings, "small", "large", "the small plan has 2 listings; large has 3")
	if _, err := list(other, "theirs"); err != nil {
		t.Errorf("what one account has counts for another: %v", err)
	}
	for i := range 4 {
		if _, err := list(uuid.UUID{}, fmt.Sprintf("own-%d", i)); err != nil {
			t.Errorf("the operator's own have a limit: %v", err)
		}
	}
	setPlan(t, db, owner, "large")
	if _, err := list(owner, "three"); err != nil {
		t.Errorf("on a larger plan: %v", err)
	}
	_, err = list(owner, "four")
	wantLimit(t, "above the largest plan", err, plan.KeyListings, "large", "", "the large plan has 3 listings, and no plan has more")

	setPlan(t, db, owner, "small")
	retire := func(s catalog.Service) {
		t.Helper()
		if _, err := planned.Retire(t.Context(), db, s.ID, catalog.AdminToken, "test"); err != nil {
			t.Fatal(err)
		}
	}
	retire(first)
	_, err = list(owner, "four")
	wantLimit(t, "after a downgrade, with as many as the plan has", err, plan.KeyListings, "small", "large", "the small plan has 2 listings; large has 3")
	second, err := store.Find(t.Context(), db, "two")
	if err != nil {
		t.Fatal(err)
	}
	retire(second)
	if _, err := list(owner, "four"); err != nil {
		t.Errorf("a retired one counts: %v", err)
	}
}

// What is retired does not count for the plan, and stays in the tables: whoever lists and retires in a loop meets the end of a day's number.
func TestStore_Create_AnAccountListsSoOftenADayWithWhatItRetired(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	owner, other := account(t, db, ""), account(t, db, "")
	pgtest.Freeze(t, db)
	n := 0
	list := func(of uuid.UUID) (catalog.Service, error) {
		n++
		return owned(t, db, of, draft(t, fmt.Sprintf("loop-%d", n), "/a"))
	}
	for range 20 { // ten times the two that the plan has
		s, err := list(owner)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := planned.Retire(t.Context(), db, s.ID, catalog.AdminToken, "test"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := list(owner)
	no, _ := errors.AsType[*refusal.Error](err)
	if no == nil || no.Reason != call.TooMany || no.Until.IsZero() || !strings.Contains(no.Detail, "20 listings were made in the account within a day") {
		t.Errorf("one more: %v", err)
	}
	for name, of := range map[string]uuid.UUID{"another account": other, "the operator": {}} {
		if _, err := list(of); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	pgtest.Shift(t, db, 24*time.Hour)
	if _, err := list(owner); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

func TestStore_AddEndpoint_AServiceGetsSoManyADayWithThoseThatAreRetired(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	owner := account(t, db, "")
	pgtest.Freeze(t, db)
	s, err := owned(t, db, owner, draft(t, "sold", "/a"))
	if err != nil {
		t.Fatal(err)
	}
	by := catalog.Author{Actor: catalog.ActorOwner, Name: "wallet"}
	n := 1 // with its first one
	add := func(by catalog.Author) error {
		n++
		return inTx(t, db, func(tx pgx.Tx) error {
			e, err := planned.AddEndpoint(t.Context(), tx, s.ID, draft(t, "x", fmt.Sprintf("/loop/%d", n)).Endpoints[0], by)
			if err != nil {
				return err
			}
			now, err := planned.Find(t.Context(), tx, "sold")
			if err != nil {
				return err
			}
			_, err = planned.RetireEndpoint(t.Context(), tx, &now, e.ID, by)
			return err
		})
	}
	for n < 20 { // ten times the two that the plan has
		if err := add(by); err != nil {
			t.Fatal(err)
		}
	}
	if err := add(by); reasonOf(err) != call.TooMany || !strings.Contains(err.Error(), "20 endpoints were made in the service within a day") {
		t.Errorf("one more: %v", err)
	}
	if err := add(catalog.AdminToken); err != nil {
		t.Errorf("an admin: %v", err)
	}
	pgtest.Shift(t, db, 24*time.Hour)
	if err := add(by); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

// Two replicas that list the last one at once: the account's row lets one of them. Without its lock several would see room for one.
func TestStore_Create_ReplicasCannotPassTheLimitTogether(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	owner := account(t, db, "large")
	var (
		wg            sync.WaitGroup
		made, refused atomic.Int32
		drafts        []catalog.Draft
	)
	for i := range 12 {
		drafts = append(drafts, draft(t, fmt.Sprintf("at-once-%d", i), "/a"))
	}
	for _, d := range drafts {
		wg.Go(func() {
			switch _, err := owned(t, db, owner, d); {
			case err == nil:
				made.Add(1)
			case reasonOf(err) == call.PlanLimit:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 3 || refused.Load() != 9 {
		t.Errorf("%d were listed and %d refused, want 3 and 9", made.Load(), refused.Load())
	}
}

func TestStore_AddEndpoint_APlanHasSoManyEndpointsInAListing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	owner := account(t, db, "")
	_, err := owned(t, db, owner, draft(t, "wide", "/a", "/b", "/c"))
	wantLimit(t, "one above, at once", err, plan.KeyEndpoints, "small", "large", "the small plan has 2 endpoints in a listing; large has 3")
	s, err := owned(t, db, owner, draft(t, "sold", "/a"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(to catalog.Service, path string) error {
		return inTx(t, db, func(tx pgx.Tx) error {
			_, err := planned.AddEndpoint(t.Context(), tx, to.ID, draft(t, "x", path).Endpoints[0], catalog.AdminToken)
			return err
		})
	}
	if err := add(s, "/b"); err != nil {
		t.Fatalf("the last one that the plan has: %v", err)
	}
	wantLimit(t, "one above", add(s, "/c"), plan.KeyEndpoints, "small", "large", "the small plan has 2 endpoints in a listing; large has 3")
	setPlan(t, db, owner, "large")
	if err := add(s, "/c"); err != nil {
		t.Errorf("on a larger plan: %v", err)
	}
	setPlan(t, db, owner, "gone")
	wantLimit(t, "on a plan that is gone", add(s, "/d"), plan.KeyEndpoints, "small", "large", "the small plan has 2 endpoints in a listing; large has 3")
	if now, err := store.Find(t.Context(), db, "sold"); err != nil || len(now.Endpoints) != 3 {
		t.Errorf("what stands under a smaller plan: %d endpoints, %v", len(now.Endpoints), err)
	}
	own, err := owned(t, db, uuid.UUID{}, draft(t, "own", "/a", "/b", "/c"))
	if err != nil {
		t.Fatal(err)
	}
	if err := add(own, "/d"); err != nil {
		t.Errorf("the operator's own has a limit: %v", err)
	}
}

func TestStore_EditEndpoint_APlanHasSoManyTrialCallsADay(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	owner := account(t, db, "")
	const text = "the small plan has 3 trial calls a day for an endpoint; large has 4"
	_, err := owned(t, db, owner, trials(t, "lavish", 4))
	wantLimit(t, "one above, when it is listed", err, plan.KeyTrialCallsPerDay, "small", "large", text)
	if no, _ := errors.AsType[*refusal.Error](err); no == nil || len(no.Fields) != 1 || no.Fields[0].Name != "/endpoints/0/trial_calls_per_day" {
		t.Errorf("it names %+v", no)
	}
	s, err := owned(t, db, owner, trials(t, "sold", 3))
	if err != nil {
		t.Fatalf("as many as the plan has: %v", err)
	}
	add := inTx(t, db, func(tx pgx.Tx) error {
		_, err := planned.AddEndpoint(t.Context(), tx, s.ID, func() catalog.EndpointDraft { d := trials(t, "x", 4).Endpoints[0]; d.Path = "/b"; return d }(), catalog.AdminToken)
		return err
	})
	wantLimit(t, "one above, of another endpoint", add, plan.KeyTrialCallsPerDay, "small", "large", text)
	edit := func(patch string) error {
		return inTx(t, db, func(tx pgx.Tx) error {
			_, err := planned.EditEndpoint(t.Context(), tx, "sold", s.Endpoints[0].ID, catalog.Edit{Patch: []byte(patch), By: catalog.AdminToken}, catalog.Rules{})
			return err
		})
	}
	wantLimit(t, "one above, by an edit", edit(`{"trial_calls_per_day":4}`), plan.KeyTrialCallsPerDay, "small", "large", text)
	setPlan(t, db, owner, "large")
	if err := edit(`{"trial_calls_per_day":4}`); err != nil {
		t.Errorf("on a larger plan: %v", err)
	}
	setPlan(t, db, owner, "")
	if err := edit(`{"description":"another text"}`); err != nil {
		t.Errorf("what stands keeps another edit out: %v", err)
	}
	if err := edit(`{"trial_calls_per_day":2}`); err != nil {
		t.Errorf("fewer: %v", err)
	}
	wantLimit(t, "and again more", edit(`{"trial_calls_per_day":4}`), plan.KeyTrialCallsPerDay, "small", "large", text)
	if _, err := owned(t, db, uuid.UUID{}, trials(t, "own", 1000)); err != nil {
		t.Errorf("the operator's own has a limit: %v", err)
	}
}

func TestStore_Used_CountsWhatALimitCounts(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	owner := account(t, db, "")
	want := func(when string, listings, endpoints, trials int64) {
		t.Helper()
		used, err := store.Used(t.Context(), db, owner)
		if err != nil {
			t.Fatal(err)
		}
		if used[plan.KeyListings] != listings || used[plan.KeyEndpoints] != endpoints || used[plan.KeyTrialCallsPerDay] != trials {
			t.Errorf("%s: %v, want %d listings, %d endpoints, %d trial calls", when, used, listings, endpoints, trials)
		}
		for _, f := range plan.Fields() {
			if _, counted := used[f.Key]; counted != f.Counted {
				t.Errorf("%s is counted: %t", f.Key, counted)
			}
		}
	}
	want("with nothing", 0, 0, 0)
	s, err := owned(t, db, owner, draft(t, "two", "/a", "/b"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owned(t, db, owner, trials(t, "one", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := owned(t, db, account(t, db, ""), trials(t, "theirs", 3)); err != nil {
		t.Fatal(err)
	}
	want("with two", 2, 2, 3)
	if err := inTx(t, db, func(tx pgx.Tx) error {
		_, err := store.RetireEndpoint(t.Context(), tx, &s, s.Endpoints[0].ID, catalog.AdminToken)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want("without an endpoint", 2, 1, 3)
	if _, err := store.Retire(t.Context(), db, s.ID, catalog.AdminToken, strings.Repeat("x", 3)); err != nil {
		t.Fatal(err)
	}
	want("without a listing", 1, 1, 1)
}
