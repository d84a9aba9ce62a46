package delivery

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
	"market/internal/strikes"
)

func (s shelf) review() *Review { return NewReview(s.db, policy) }

// A struck is one strike as the database keeps it.
type struck struct {
	ID     uuid.UUID
	State  strikes.State
	Proofs int
}

// rows returns the strikes of the service in the order of their opening.
func (s shelf) rows(t *testing.T) (all []struck) {
	t.Helper()
	rows, err := s.db.Query(t.Context(), `
SELECT id, state, (SELECT count(*) FROM strike_deliveries WHERE strike_id = strikes.id) FROM strikes WHERE service_id = $1 ORDER BY opened_at, id`, s.service.ID)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var f struck
		if err := rows.Scan(&f.ID, &f.State, &f.Proofs); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

func (s shelf) states(t *testing.T) (all []strikes.State) {
	t.Helper()
	for _, f := range s.rows(t) {
		all = append(all, f.State)
	}
	return all
}

func (s shelf) wantStrikes(t *testing.T, when string, want ...strikes.State) {
	t.Helper()
	if got := s.states(t); !slices.Equal(got, want) {
		t.Errorf("%s the strikes are %v, want %v", when, got, want)
	}
}

func (s shelf) wantState(t *testing.T, when string, want catalog.State) catalog.Service {
	t.Helper()
	now, err := catalog.Store{}.Find(t.Context(), s.db, s.service.Slug)
	if err != nil {
		t.Fatal(err)
	}
	if now.State != want {
		t.Errorf("%s the service is %s, want %s", when, now.State, want)
	}
	return now
}

// incidents are so many failures, each asked after the cooldown of the one before.
func (s shelf) incidents(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		if i > 0 {
			pgtest.Shift(t, s.db, rest)
		}
		s.fail(t)
	}
}

// literal is a recorder for which every failure is an incident, also of those that are asked at once.
func (s shelf) literal(t *testing.T, failures int) {
	t.Helper()
	p := policy
	p.Fold = 0
	r := s.counting(s.recorder.jobs, p, rest)
	var all []Delivery
	for range failures {
		all = append(all, s.asked(t).failed())
	}
	for _, d := range all {
		if err := r.Record(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		pgtest.Shift(t, s.db, time.Second)
	}
}

func (s shelf) void(t *testing.T, strike uuid.UUID) Decision {
	t.Helper()
	d, err := s.review().Void(t.Context(), strike, catalog.AdminToken, "it was our proxy")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s shelf) relist(t *testing.T) Decision {
	t.Helper()
	_, d, err := s.review().Relist(t.Context(), s.service.Slug, Order{By: catalog.AdminToken, Reason: "it was repaired"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s shelf) suspend(t *testing.T) {
	t.Helper()
	if _, _, err := s.review().Suspend(t.Context(), s.service.Slug, Order{By: catalog.AdminToken, Reason: "a complaint"}); err != nil {
		t.Fatal(err)
	}
}

// wantConflict says whether a decision was refused for another one, in words that name what it says.
func wantConflict(t *testing.T, when string, err error, words ...string) {
	t.Helper()
	no, ok := errors.AsType[*refusal.Error](err)
	if !ok || no.Reason != call.Conflict {
		t.Errorf("%s: %v, want a conflict", when, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(no.Detail, word) {
			t.Errorf("%s: %q does not say %q", when, no.Detail, word)
		}
	}
}

func TestReview_Void_TakesBackEverythingThatFollowed(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	s.wantState(t, "after the third", catalog.Delisted)
	third := s.rows(t)[2].ID

	d := s.void(t, third)
	now := s.wantState(t, "after the void", catalog.Listed)
	if now.StateCause != catalog.CauseVoid || now.StateBy != catalog.AdminToken || now.StateReason != "it was our proxy" {
		t.Errorf("it is listed for %s by %v: %s", now.StateCause, now.StateBy, now.StateReason)
	}
	s.wantStrikes(t, "after the void", strikes.Open, strikes.Open, strikes.Voided)
	if left := s.rests(t); left != 0 {
		t.Errorf("it rests for %s more", left)
	}
	if d.Before.State != catalog.Delisted || d.After.State != catalog.Listed || d.Before.Counting != 3 || d.After.Counting != 2 ||
		d.Before.Strikes[third] != strikes.Open || d.After.Strikes[third] != strikes.Voided || len(d.After.Strikes) != 3 ||
		d.Before.CooldownUntil == nil || d.After.CooldownUntil != nil {
		t.Errorf("the decision says before %+v, after %+v", d.Before, d.After)
	}
	if words := d.Effect(); !strings.Contains(words, "back on the shelf") || !strings.Contains(words, "count now: 2") || !strings.Contains(words, "cooldown ends") {
		t.Errorf("its effect in words: %s", words)
	}
	s.asked(t) // and it gets work again
}

// What follows from the strikes that stay is not taken back.
func TestReview_Void_LeavesTheCooldownOfAnotherStrike(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, 2)
	d := s.void(t, s.rows(t)[0].ID)
	if left := s.rests(t); left != rest {
		t.Errorf("it rests for %s, want %s: the second strike stays", left, rest)
	}
	if d.After.State != catalog.Listed || strings.Contains(d.Effect(), "cooldown") {
		t.Errorf("its effect in words: %s", d.Effect())
	}
}

// B136: a delisting that would have come without the voided strike, a little later, stays.
func TestReview_Void_StrikesThatCameAfterTheDelistingCountAsIfItHadNotBeen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.literal(t, policy.Limit+1) // the fourth came back when the service was delisted already
	all := s.rows(t)
	s.wantState(t, "after the fourth", catalog.Delisted)

	d := s.void(t, all[0].ID)
	s.wantState(t, "with three that stay", catalog.Delisted)
	if !strings.Contains(d.Effect(), "stays delisted") {
		t.Errorf("its effect in words: %s", d.Effect())
	}
	s.void(t, all[3].ID)
	s.wantState(t, "with two that stay", catalog.Listed)
}

// A strike that a success cleared after the delisting counted when the service was delisted.
func TestReview_Void_CountsAsOfTheDelisting(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	pgtest.Shift(t, s.db, rest)
	success := s.asked(t) // after the first, before the others; it ends when all is over
	s.fail(t)
	pgtest.Shift(t, s.db, rest)
	s.fail(t)
	s.wantState(t, "after the third", catalog.Delisted)
	pgtest.Shift(t, s.db, time.Second)
	s.record(t, success.served())
	s.wantStrikes(t, "after the success", strikes.Cleared, strikes.Open, strikes.Open)
	all := s.rows(t)

	pgtest.Shift(t, s.db, policy.Window) // as of now none of them counts
	d := s.void(t, all[0].ID)
	s.wantState(t, "without the one that was cleared", catalog.Listed)
	if d.Before.Strikes[all[0].ID] != strikes.Cleared || !strings.Contains(d.Effect(), "had been cleared") {
		t.Errorf("its effect in words: %s", d.Effect())
	}
}

func TestReview_Void_WhatCountedThenStillDelistsAfterwards(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, 1)
	pgtest.Shift(t, s.db, policy.Window) // the first has left the window when the others come
	s.incidents(t, policy.Limit)
	s.wantState(t, "after the fourth", catalog.Delisted)
	s.void(t, s.rows(t)[0].ID)
	s.wantState(t, "without one that did not count", catalog.Delisted)
}

func TestReview_Void_BringsASuspensionBack(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.literalUnderSuspension(t)
	s.wantState(t, "after failures under way", catalog.Delisted)
	s.void(t, s.rows(t)[1].ID)
	if now := s.wantState(t, "after the void", catalog.Suspended); now.StateCause != catalog.CauseVoidSuspended || !strings.Contains(now.PublicReason(), "suspended") {
		t.Errorf("it is suspended for %s: %s", now.StateCause, now.PublicReason())
	}
	if _, d, err := s.review().Relist(t.Context(), s.service.Slug, Order{By: catalog.AdminToken, Reason: "all is well"}); err != nil || d.After.Counting != 2 {
		t.Errorf("relisted with %d strikes that count, %v; want two", d.After.Counting, err)
	}
}

// literalUnderSuspension lets as many calls fail as delist that were under way when an admin suspended the service.
func (s shelf) literalUnderSuspension(t *testing.T) {
	t.Helper()
	p := policy
	p.Fold = 0
	r := s.counting(s.recorder.jobs, p, rest)
	var all []Delivery
	for range policy.Limit {
		all = append(all, s.asked(t).failed())
	}
	s.suspend(t)
	for _, d := range all {
		if err := r.Record(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		pgtest.Shift(t, s.db, time.Second)
	}
}

func TestReview_Void_IsForAdminsAndForTheProgram(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	all := s.rows(t)
	for _, by := range []catalog.Author{{}, catalog.Recorder, {Actor: catalog.ActorOwner, Name: "the owner"}, {Actor: catalog.ActorAdmin}} {
		if _, err := s.review().Void(t.Context(), all[0].ID, by, "because"); err == nil {
			t.Errorf("%v voids a strike", by)
		}
	}
	if _, err := s.review().Void(t.Context(), all[0].ID, catalog.AdminToken, ""); err == nil {
		t.Error("a strike is void for no reason")
	}
	s.wantState(t, "after nothing", catalog.Delisted)
	s.wantStrikes(t, "after nothing", strikes.Open, strikes.Open, strikes.Open)
	s.write(t, outageSQL, -time.Hour, nil)
	s.write(t, `UPDATE deliveries SET party = 'platform', excused_by = (SELECT id FROM outages)`)
	if _, err := s.review().Void(t.Context(), all[0].ID, catalog.System, "our network was down"); err != nil {
		t.Fatal(err)
	}
	if now := s.wantState(t, "after an outage", catalog.Listed); now.StateBy != catalog.System {
		t.Errorf("it is listed by %v", now.StateBy)
	}
	if _, err := s.review().Void(t.Context(), uuid.Must(uuid.NewV7()), catalog.System, "our network was down"); !refusedFor(err, call.NotFound) {
		t.Errorf("no strike: %v", err)
	}
}

func refusedFor(err error, reason call.Reason) bool {
	no, ok := errors.AsType[*refusal.Error](err)
	return ok && no.Reason == reason
}

// What joins a strike that does not count does not make it count again.
func TestReview_WhatWasAskedBeforeAReviewJoinsWhatItClosed(t *testing.T) {
	t.Parallel()
	for name, closes := range map[strikes.State]func(s shelf){
		strikes.Voided:   func(s shelf) { s.void(t, s.rows(t)[2].ID) },
		strikes.Archived: func(s shelf) { s.relist(t) },
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.incidents(t, policy.Limit-1)
			pgtest.Shift(t, s.db, rest)
			underWay := s.asked(t).failed()
			s.fail(t)
			pgtest.Shift(t, s.db, time.Second)
			closes(s)
			s.record(t, underWay)
			all := s.rows(t)
			if len(all) != 3 || all[2].State != name || all[2].Proofs != 2 {
				t.Errorf("after a failure of a call that was under way: %v, want it beside the third, still %s", all, name)
			}
			s.wantState(t, "then", catalog.Listed)
			pgtest.Shift(t, s.db, rest) // that failure gave it a rest of its own
			s.fail(t)
			if all = s.rows(t); len(all) != 4 || all[3].State != strikes.Open {
				t.Errorf("after the next failure: %v, want a strike of its own", all)
			}
		})
	}
}

// A cooldown that was taken back leaves no time in which failures are free.
func TestReview_WhatIsAskedAfterAReviewIsAnotherIncident(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	pgtest.Shift(t, s.db, time.Second)
	s.void(t, s.rows(t)[0].ID)
	s.fail(t) // at the very moment
	s.wantStrikes(t, "after a failure at once", strikes.Voided, strikes.Open)
}

func TestReview_Uphold_StandsUntilAnAppeal(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	strike := s.rows(t)[1].ID
	r := s.review()
	d, err := r.Uphold(t.Context(), strike, catalog.AdminToken, "the snippet is plain")
	if err != nil || d.After.Counting != 3 || d.After.State != catalog.Delisted || d.Action != audit.Uphold {
		t.Fatalf("uphold: %+v, %v", d, err)
	}
	s.wantStrikes(t, "after it was upheld", strikes.Open, strikes.Open, strikes.Open)
	pgtest.Shift(t, s.db, time.Second)
	_, err = r.Void(t.Context(), strike, catalog.AdminToken, "on second thought")
	wantConflict(t, "void what was upheld", err, "upheld already", "admin token", s.opened.Add(2*rest).Format("15:04:05"), "the snippet is plain")
	_, err = r.Uphold(t.Context(), strike, catalog.AdminToken, "once more")
	wantConflict(t, "uphold it again", err, "upheld already")
	_, err = r.Void(t.Context(), strike, catalog.System, "our network was down")
	wantConflict(t, "the program against an admin", err, "upheld already")

	s.appeal(t, strike)
	pgtest.Shift(t, s.db, time.Second)
	if _, err := r.Void(t.Context(), strike, catalog.AdminToken, "on second thought"); err != nil {
		t.Errorf("after an appeal: %v", err)
	}
	s.wantState(t, "then", catalog.Listed)
	_, err = r.Uphold(t.Context(), strike, catalog.AdminToken, "no")
	wantConflict(t, "uphold what is void", err, "void already", "on second thought")
}

func TestReview_OfManyAtOnceOneDecides(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	strike := s.rows(t)[0].ID
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		stood []Decision
	)
	for i := range 8 {
		wg.Go(func() {
			do := map[bool]func() (Decision, error){
				true:  func() (Decision, error) { return s.review().Void(t.Context(), strike, catalog.AdminToken, "void") },
				false: func() (Decision, error) { return s.review().Uphold(t.Context(), strike, catalog.AdminToken, "uphold") },
			}[i%2 == 0]
			d, err := do()
			if err != nil {
				wantConflict(t, "the others", err, "already, by admin token at ")
				return
			}
			mu.Lock()
			defer mu.Unlock()
			stood = append(stood, d)
		})
	}
	wg.Wait()
	if len(stood) != 1 {
		t.Fatalf("%d decisions stand, want 1", len(stood))
	}
	want := map[audit.Action]catalog.State{audit.Void: catalog.Listed, audit.Uphold: catalog.Delisted}[stood[0].Action]
	s.wantState(t, "after "+stood[0].Reason, want)
	entries, _, _, err := audit.Store{}.List(t.Context(), s.db, s.service.ID, 10, "")
	if err != nil || len(entries) != 1 || entries[0].Reason != stood[0].Reason {
		t.Errorf("the audit has %v, %v; want the one", entries, err)
	}
}

// What was held for want of a second network is held no longer where its strikes fall short.
func TestReview_Void_EndsAHoldThatStrikesMade(t *testing.T) {
	t.Parallel()
	s := newShelf(t).needing(2)
	s.incidents(t, policy.Limit)
	s.wantState(t, "with three strikes of one network", catalog.Held)
	s.void(t, s.rows(t)[2].ID)
	if now := s.wantState(t, "with two", catalog.Listed); now.StateCause != catalog.CauseVoid {
		t.Errorf("it is listed for %s", now.StateCause)
	}
}

// A delisting and the hold before it each stand by what still counts.
func TestReview_Void_TakesBackADelistingAndTheHoldBeforeIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		voids []int // of the strikes, in the order of their opening
		want  []catalog.State
	}{
		"the one of the second network, then one of the first": {[]int{3, 0}, []catalog.State{catalog.Held, catalog.Listed}},
		"one of the first, then the one of the second":         {[]int{0, 3}, []catalog.State{catalog.Delisted, catalog.Listed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t).needing(2)
			p := policy
			p.Sources, p.Fold = 2, 0
			r := s.counting(s.recorder.jobs, p, rest)
			another := s.asked(t).called("203.0.113.1").failed() // under way while the first network has it held
			s.incidents(t, policy.Limit)
			s.wantState(t, "with three strikes of one network", catalog.Held)
			pgtest.Shift(t, s.db, time.Second)
			if err := r.Record(t.Context(), another); err != nil {
				t.Fatal(err)
			}
			s.wantState(t, "with a fourth of another", catalog.Delisted)
			all := s.rows(t)
			for i, n := range tt.voids {
				s.void(t, all[n].ID)
				s.wantState(t, "after a void", tt.want[i])
			}
		})
	}
}

// The limit and the window are those of the delisting, whatever is configured by now.
func TestReview_Void_CountsByThePolicyOfThen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	strict := policy
	strict.Limit = 1
	if _, err := NewReview(s.db, strict).Void(t.Context(), s.rows(t)[0].ID, catalog.AdminToken, "it was our proxy"); err != nil {
		t.Fatal(err)
	}
	s.wantState(t, "with two that stay of three that were needed", catalog.Listed)
}

// A program from before the table of delistings leaves none; what is configured now is all there is to count by.
func TestReview_Void_OfADelistingByAnOlderProgram(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit-1)
	if err := s.delist(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.void(t, s.rows(t)[0].ID)
	s.wantState(t, "with one strike", catalog.Listed)
}

// A success that cleared a strike after the delisting does not make the delisting one strike short: only a void of what counted then does.
func TestReview_Void_WhatWasClearedSinceCountedThen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	success := s.asked(t)
	success.AskedAt = s.opened.Add(time.Millisecond) // after the first strike, and it ends when all is over
	s.literal(t, policy.Limit+1)
	s.record(t, success.served())
	s.wantStrikes(t, "after the success", strikes.Cleared, strikes.Open, strikes.Open, strikes.Open)
	s.void(t, s.rows(t)[3].ID)
	s.wantState(t, "without the last, which came after the delisting", catalog.Delisted)
}

// A hold that a relisting has settled explains no later one.
func TestReview_Void_LeavesAHoldThatStrikesDidNotMake(t *testing.T) {
	t.Parallel()
	s := newShelf(t).needing(2)
	s.incidents(t, policy.Limit)
	s.wantState(t, "with three strikes of one network", catalog.Held)
	pgtest.Shift(t, s.db, time.Second)
	s.relist(t)
	pgtest.Shift(t, s.db, time.Second)
	s.fail(t)
	measured := catalog.Change{Cause: catalog.CauseReview, By: catalog.System, Reason: "it throttles"}
	if moved, err := (catalog.Store{}).Move(t.Context(), s.db, s.service.ID, measured); err != nil || !moved {
		t.Fatalf("moved = %v, %v", moved, err)
	}
	s.void(t, s.rows(t)[3].ID)
	s.wantState(t, "after a void", catalog.Held)
}
