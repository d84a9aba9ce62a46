package delivery

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"market/internal/audit"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

func TestReview_Relist_ArchivesWhatDelisted(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	d := s.relist(t)
	now := s.wantState(t, "relisted", catalog.Listed)
	if now.StateCause != catalog.CauseRelisting || now.StateReason != "it was repaired" {
		t.Errorf("it is listed for %s: %s", now.StateCause, now.StateReason)
	}
	s.wantStrikes(t, "relisted", strikes.Archived, strikes.Archived, strikes.Archived)
	if left := s.rests(t); left != 0 {
		t.Errorf("it rests for %s more", left)
	}
	if d.Before.Counting != 3 || d.After.Counting != 0 || len(d.After.Strikes) != 3 {
		t.Errorf("before %+v, after %+v", d.Before, d.After)
	}
	_, err := s.review().Void(t.Context(), s.rows(t)[0].ID, catalog.AdminToken, "late")
	wantConflict(t, "void what is archived", err, "archived")

	// It begins anew: as many incidents as delist.
	for n := 1; n <= policy.Limit; n++ {
		s.fail(t)
		s.wantState(t, "after another failure", map[bool]catalog.State{true: catalog.Delisted, false: catalog.Listed}[n == policy.Limit])
		pgtest.Shift(t, s.db, rest)
	}
	s.void(t, s.rows(t)[3].ID)
	s.wantState(t, "without one of the three since", catalog.Listed)
}

func TestReview_Relist_OfWhatIsHeldArchivesItsStrikes(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit-1)
	hold := catalog.Change{Cause: catalog.CauseReview, By: catalog.System, Reason: "it throttles"}
	if moved, err := (catalog.Store{}).Move(t.Context(), s.db, s.service.ID, hold); err != nil || !moved {
		t.Fatalf("moved = %v, %v", moved, err)
	}
	s.void(t, s.rows(t)[0].ID)
	s.wantState(t, "held for another reason than its strikes", catalog.Held)
	s.relist(t)
	s.wantStrikes(t, "relisted", strikes.Voided, strikes.Archived)
}

func TestReview_Relist_OfWhatWasSuspendedKeepsItsStrikes(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit-1)
	s.suspend(t)
	s.relist(t)
	s.wantStrikes(t, "relisted", strikes.Open, strikes.Open)
	if left := s.rests(t); left != rest {
		t.Errorf("it rests for %s, want %s", left, rest)
	}
}

func TestReview_OfManyOrdersAtOnceOneIsCarriedOut(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	var done atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, _, err := s.review().Suspend(t.Context(), s.service.Slug, Order{By: catalog.AdminToken, Reason: "a complaint"})
			if err != nil {
				wantConflict(t, "the others", err, "suspended already, by admin token at ", "a complaint")
				return
			}
			done.Add(1)
		})
	}
	wg.Wait()
	if done.Load() != 1 {
		t.Errorf("%d suspensions, want 1", done.Load())
	}
}

func TestReview_Orders_SayWhyNot(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	order := Order{By: catalog.AdminToken, Reason: "because"}
	_, _, err := s.review().Relist(t.Context(), s.service.Slug, order)
	wantConflict(t, "relist what is listed", err, "on the shelf already", "created")
	s.incidents(t, policy.Limit)
	_, _, err = s.review().Suspend(t.Context(), s.service.Slug, order)
	wantConflict(t, "suspend what is delisted", err, "delisted already", "by recorder", "3 strikes")
	if _, err := (catalog.Store{}).Retire(t.Context(), s.db, s.service.ID, catalog.AdminToken, "gives up"); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"relist":  func() error { _, _, err := s.review().Relist(t.Context(), s.service.Slug, order); return err },
		"suspend": func() error { _, _, err := s.review().Suspend(t.Context(), s.service.Slug, order); return err },
	} {
		wantConflict(t, name, do(), "retired")
	}
	s.void(t, s.rows(t)[0].ID)
	s.wantState(t, "after a void", catalog.Retired)
}

// One entry a decision, with how it stood before and after.
func TestReview_EachDecisionHasItsEntry(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	strike := s.rows(t)[0].ID
	if _, err := s.review().Uphold(t.Context(), strike, catalog.AdminToken, "plain"); err != nil {
		t.Fatal(err)
	}
	s.relist(t)
	s.suspend(t)
	entries, next, _, err := audit.Store{}.List(t.Context(), s.db, s.service.ID, 10, "")
	if err != nil || len(entries) != 3 || next != "" {
		t.Fatalf("entries = %v, %q, %v; want 3", entries, next, err)
	}
	for i, want := range []struct {
		action        audit.Action
		subject       audit.Subject
		reason        string
		before, after catalog.State
		was, is       strikes.State
	}{
		{audit.Suspend, audit.Service("weather"), "a complaint", catalog.Listed, catalog.Suspended, "", ""},
		{audit.Relist, audit.Service("weather"), "it was repaired", catalog.Delisted, catalog.Listed, strikes.Open, strikes.Archived},
		{audit.Uphold, audit.Strike(strike), "plain", catalog.Delisted, catalog.Delisted, strikes.Open, strikes.Open},
	} {
		e := entries[i]
		var before, after Case
		if err := errors.Join(json.Unmarshal(e.Before, &before), json.Unmarshal(e.After, &after)); err != nil {
			t.Fatal(err)
		}
		if e.Action != want.action || e.Subject != want.subject || e.Reason != want.reason || e.By != "admin token" || e.Actor != "admin" || e.Slug != "weather" ||
			before.State != want.before || after.State != want.after || before.Strikes[strike] != want.was || after.Strikes[strike] != want.is {
			t.Errorf("entry %d = %+v: before %s, after %s", i, e, e.Before, e.After)
		}
	}
}

// What was decided by a page or an answer that is no longer so would settle strikes that nobody looked at.
func TestReview_Orders_RestOnTheStateThatWasSeen(t *testing.T) {
	t.Parallel()
	open := func(n int) []strikes.State { return slices.Repeat([]strikes.State{strikes.Open}, n) }
	for name, tt := range map[string]struct {
		before, after func(s shelf)
		seen          catalog.State
		stay          []strikes.State
	}{
		"delisted, put back and delisted again": {
			before: func(s shelf) { s.incidents(t, policy.Limit) }, seen: catalog.Delisted,
			after: func(s shelf) { s.relist(t); s.incidents(t, policy.Limit) },
			stay:  append(slices.Repeat([]strikes.State{strikes.Archived}, policy.Limit), open(policy.Limit)...),
		},
		"suspended, and delisted by a call that was under way": {
			before: func(s shelf) { s.incidents(t, policy.Limit-1); s.suspend(t) }, seen: catalog.Suspended,
			after: func(s shelf) {
				late := s.trial(t)
				s.record(t, late.failed())
			},
			stay: open(policy.Limit),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			tt.before(s)
			order := Order{By: catalog.AdminToken, Reason: "it was repaired", StateSince: s.wantState(t, "as it was seen", tt.seen).StateSince}
			pgtest.Shift(t, s.db, rest)
			tt.after(s)
			now := s.wantState(t, "then", catalog.Delisted)
			_, _, err := s.review().Relist(t.Context(), s.service.Slug, order)
			wantConflict(t, "by what was seen", err, "changed after you looked", "is delisted, by recorder at ", "3 strikes")
			s.wantState(t, "after that", catalog.Delisted)
			s.wantStrikes(t, "after that", tt.stay...)

			order.StateSince = now.StateSince
			if _, _, err := s.review().Relist(t.Context(), s.service.Slug, order); err != nil {
				t.Errorf("by what is: %v", err)
			}
		})
	}
}

// The audit keeps the first hundred strikes by name; whoever decides is told of all.
func TestReview_Relist_SaysHowManyStrikesItArchived(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	s.write(t, `
INSERT INTO strikes (id, service_id, opened_at, folds_until, last_evidence_at)
SELECT gen_random_uuid(), $1, market_now(), market_now(), market_now() FROM generate_series(1, 100)`, s.service.ID)
	if words := s.relist(t).Effect(); !strings.Contains(words, "any more: 103.") {
		t.Errorf("its effect in words: %s", words)
	}
}
