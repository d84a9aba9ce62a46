package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
)

var owner = catalog.Author{Actor: catalog.ActorOwner, Name: "the owner"}

// steps lead from the creation to each state.
var steps = map[catalog.State][]catalog.Change{
	catalog.Listed:    nil,
	catalog.Delisted:  {{Cause: catalog.CauseStrikes, By: catalog.Recorder, Reason: "3 strikes"}},
	catalog.Suspended: {{Cause: catalog.CauseSuspension, By: catalog.AdminToken, Reason: "fraud"}},
	catalog.Held:      {{Cause: catalog.CauseReview, By: catalog.System, Reason: "throttles half of its calls"}},
	catalog.Retired:   {{Cause: catalog.CauseWithdrawn, By: owner, Reason: "no longer offered"}},
}

func move(t *testing.T, db *pgxpool.Pool, id uuid.UUID, c catalog.Change) {
	t.Helper()
	if moved, err := store.Move(t.Context(), db, id, c); err != nil || !moved {
		t.Fatalf("%s by %s: moved = %v, %v", c.Cause, c.By.Name, moved, err)
	}
}

// in returns a service that is in a state.
func in(t *testing.T, db *pgxpool.Pool, state catalog.State) catalog.Service {
	t.Helper()
	s := create(t, db, draft(t, string(state), "/"))
	for _, c := range steps[state] {
		move(t, db, s.ID, c)
	}
	return find(t, db, s.Slug)
}

func find(t *testing.T, db *pgxpool.Pool, slug string) catalog.Service {
	t.Helper()
	s, err := store.Find(t.Context(), db, slug)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// B134: there is no state that nothing leads to, and none but the last that nothing leads out of.
func TestMoves_LeadToEachStateOnceForACauseAndOutOfAllButTheLast(t *testing.T) {
	t.Parallel()
	to, out, seen := map[catalog.Cause]catalog.State{}, map[catalog.State]bool{}, map[catalog.Move]bool{}
	reached := map[catalog.State]bool{}
	for _, m := range catalog.Moves() {
		if seen[m] {
			t.Errorf("%v stands twice", m)
		}
		seen[m] = true
		if first, known := to[m.Cause]; known && first != m.To {
			t.Errorf("%s leads to %s and to %s: a change that names none could not be told", m.Cause, first, m.To)
		}
		to[m.Cause], out[m.From], reached[m.To] = m.To, true, true
		if m.From == m.To {
			t.Errorf("%v leads nowhere", m)
		}
	}
	for _, s := range catalog.States() {
		if !reached[s] || out[s] != (s != catalog.Retired) {
			t.Errorf("%s: reached = %v, has an exit = %v", s, reached[s], out[s])
		}
		if s.Sells() && s.Returns() {
			t.Errorf("%s sells and returns", s)
		}
	}
	if len(to) != len(catalog.Causes()) {
		t.Errorf("%d causes lead somewhere, there are %d", len(to), len(catalog.Causes()))
	}
}

func TestMoves_AreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	rows, err := pgtest.New(t).Query(t.Context(), `SELECT from_state, cause, actor, to_state FROM service_moves`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[catalog.Move])
	if err != nil {
		t.Fatal(err)
	}
	order := func(a, b catalog.Move) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	want := catalog.Moves()
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		t.Errorf("the database has\n%v, the code\n%v", got, want)
	}
}

func TestStore_Move_OnlyWhatTheTableAllowsHappens(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, from := range catalog.States() {
		s := in(t, db, from)
		for _, cause := range catalog.Causes() {
			for _, actor := range catalog.Actors() {
				at := slices.IndexFunc(catalog.Moves(), func(m catalog.Move) bool { return m.From == from && m.Cause == cause && m.By == actor })
				tx, err := db.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				moved, err := store.Move(t.Context(), tx, s.ID, catalog.Change{Cause: cause, By: catalog.Author{Actor: actor, Name: "somebody"}, Reason: "why"})
				if moved != (at >= 0) || err != nil && moved {
					t.Errorf("%s, %s by %s: moved = %v, %v; want %v", from, cause, actor, moved, err, at >= 0)
				}
				if now, err := store.Find(t.Context(), tx, s.Slug); err != nil || !moved && now.State != from || moved && now.State != catalog.Moves()[at].To {
					t.Errorf("%s, %s by %s: the service is %s, %v", from, cause, actor, now.State, err)
				}
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// B134: whatever becomes of a service, there is a row that says why.
func TestStore_Events_HoldEveryChangeWithItsReason(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	changes := []catalog.Change{
		{Cause: catalog.CauseSuspension, By: catalog.AdminToken, Reason: "fraud"},
		{Cause: catalog.CauseRelisting, By: catalog.AdminToken, Reason: "no fraud"},
		{Cause: catalog.CauseReview, By: catalog.System, Reason: "throttles"},
		{Cause: catalog.CauseRelisting, By: catalog.AdminToken, Reason: "no longer"},
		{Cause: catalog.CauseStrikes, By: catalog.Recorder, Reason: "3 strikes"},
		{Cause: catalog.CauseWithdrawn, By: owner, Reason: "gives up"},
	}
	for _, c := range changes {
		move(t, db, s.ID, c)
	}
	if moved, err := store.Delist(t.Context(), db, s.ID, "too late"); err != nil || moved {
		t.Fatalf("moved = %v, %v", moved, err)
	}
	events, err := store.Events(t.Context(), db, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s-%s>%s %s: %s", e.From, e.Cause, e.To, e.By.Name, e.Reason))
		if e.At.IsZero() {
			t.Errorf("%v has no time", e)
		}
	}
	want := []string{
		"delisted-withdrawn>retired the owner: gives up", "listed-strikes>delisted recorder: 3 strikes",
		"held-relisting>listed admin token: no longer", "listed-review>held system: throttles",
		"suspended-relisting>listed admin token: no fraud", "listed-suspension>suspended admin token: fraud",
		"-created>listed system: created",
	}
	if !slices.Equal(got, want) {
		t.Errorf("events:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	now := find(t, db, "weather")
	if last := events[0]; now.StateCause != last.Cause || now.StateBy != last.By || now.StateReason != last.Reason || !now.StateSince.Equal(last.At) {
		t.Errorf("the service says %s by %v: %s; its last event is %v", now.StateCause, now.StateBy, now.StateReason, last)
	}
}

// What an admin writes is for the owner and for admins; what the marketplace itself finds is for everybody.
func TestService_PublicReason_KeepsWhatAPersonWrote(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for state, public := range map[catalog.State]bool{
		catalog.Listed: true, catalog.Delisted: true, catalog.Suspended: false, catalog.Held: false, catalog.Retired: true,
	} {
		s := in(t, db, state)
		if got := s.PublicReason(); got == "" || (got == s.StateReason) != public {
			t.Errorf("%s: everybody reads %q, the owner %q", state, got, s.StateReason)
		}
	}
}

// A void may leave a service held that was never held before: its strikes stay, and come from too few networks.
func TestEvent_PublicReason_OfAHoldByAVoidDoesNotSayThatItWasHeldBefore(t *testing.T) {
	t.Parallel()
	e := catalog.Event{From: catalog.Delisted, Cause: catalog.CauseVoidHeld, To: catalog.Held, Reason: "our proxy"}
	if got := e.PublicReason(); !strings.HasPrefix(got, "held for a review by the operator") || strings.Contains(got, "before") || strings.Contains(got, "proxy") {
		t.Errorf("everybody reads %q", got)
	}
}

func TestStore_Move_OfManyAtOnceOneMovesAndHasTheOneEvent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	var moved atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ok, err := store.Move(t.Context(), db, s.ID, catalog.Change{Cause: catalog.CauseSuspension, By: catalog.AdminToken, Reason: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
			}
			if ok {
				moved.Add(1)
			}
		})
	}
	wg.Wait()
	events, err := store.Events(t.Context(), db, s.ID)
	if err != nil || moved.Load() != 1 || len(events) != 2 || find(t, db, "weather").StateReason != events[0].Reason {
		t.Errorf("moved = %d, events = %v, %v; want one, with its creation before it", moved.Load(), events, err)
	}
}

func TestServices_TheDatabaseRefusesAStateWithoutItsReason(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	create(t, db, draft(t, "weather", "/"))
	for name, tt := range map[string]struct{ sql, constraint string }{
		"a suspension without a cause":        {`UPDATE services SET state = 'suspended'`, "services_state_named"},
		"a suspension by nobody who may":      {`UPDATE services SET state = 'suspended', state_cause = 'suspension', state_actor = 'owner'`, "service_events_move_known"},
		"a suspension without words":          {`UPDATE services SET state = 'suspended', state_cause = 'suspension', state_reason = ''`, "service_events_reason_given"},
		"a suspension by nobody":              {`UPDATE services SET state = 'suspended', state_cause = 'suspension', state_by = ''`, "service_events_author_given"},
		"a cause of another state":            {`UPDATE services SET state = 'suspended', state_cause = 'strikes', state_actor = 'recorder'`, "service_events_move_known"},
		"a state that nobody knows":           {`UPDATE services SET state = 'paused', state_cause = 'suspension'`, "services_state_known"},
		"another reason for the same state":   {`UPDATE services SET state_reason = 'rewritten'`, "services_state_named"},
		"a service that begins off the shelf": {`INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses, state) SELECT gen_random_uuid(), 'x', name, base_url, probe_method, probe_path, probe_statuses, 'retired' FROM services`, "service_events_move_known"},
		"an event that is rewritten":          {`UPDATE service_events SET detail = 'nothing happened'`, "service_events_only_added"},
		"an event that is taken away":         {`DELETE FROM service_events`, "service_events_only_added"},
		"all events taken away":               {`TRUNCATE service_events`, "service_events_only_added"},
		"all revisions taken away":            {`TRUNCATE service_revisions`, "service_revisions_only_added"},
	} {
		_, err := db.Exec(t.Context(), tt.sql)
		if constraintOf(err) != tt.constraint {
			t.Errorf("%s: %v, want a violation of %s", name, err, tt.constraint)
		}
	}
}

// The statements of a program from before the reasons still run, and are given theirs.
func TestServices_AnOlderProgramsChangesHaveReasonsToo(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, sql := range []string{
		`INSERT INTO services (id, slug, name, description, tags, base_url, probe_method, probe_path, probe_statuses)
		 VALUES (gen_random_uuid(), 'old', 'Old', '', '{}', 'https://old.example', 'GET', '/', '200')`,
		`UPDATE services SET state = 'delisted', state_reason = '3 strikes within 24h0m0s', state_since = market_now() WHERE slug = 'old' AND state = 'listed'`,
		`UPDATE services SET state = 'retired', state_reason = 'retired by an admin', state_since = market_now() WHERE slug = 'old' AND state <> 'retired'`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	events, err := store.Events(t.Context(), db, find(t, db, "old").ID)
	if err != nil || len(events) != 3 {
		t.Fatalf("events = %v, %v; want 3", events, err)
	}
	for i, want := range []catalog.Event{
		{From: catalog.Delisted, Cause: catalog.CauseWithdrawn, By: catalog.AdminToken, To: catalog.Retired, Reason: "retired by an admin"},
		{From: catalog.Listed, Cause: catalog.CauseStrikes, By: catalog.Recorder, To: catalog.Delisted, Reason: "3 strikes within 24h0m0s"},
		{Cause: catalog.CauseCreated, By: catalog.AdminToken, To: catalog.Listed, Reason: "created"},
	} {
		want.At = events[i].At
		if events[i] != want {
			t.Errorf("event %d = %+v, want %+v", i, events[i], want)
		}
	}
}

func TestStore_Gone_SaysWhyForEver(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	in(t, db, catalog.Retired)
	in(t, db, catalog.Suspended)
	if _, err := db.Exec(t.Context(), `UPDATE market_clock SET shift = '20 years'`); err != nil {
		t.Fatal(err)
	}
	if no, err := store.Gone(t.Context(), db, "retired"); err != nil || no == nil || !strings.Contains(no.Detail, "no longer offered") {
		t.Errorf("a retired service: %v, %v", no, err)
	}
	for _, slug := range []string{"suspended", "nobody", "No Name", ""} {
		if no, err := store.Gone(t.Context(), db, slug); err != nil || no != nil {
			t.Errorf("%q: %v, %v; want nothing", slug, no, err)
		}
	}
}
