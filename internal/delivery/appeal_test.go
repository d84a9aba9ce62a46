package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
)

var provider = catalog.Author{Actor: catalog.ActorOwner, Name: "the provider"}

// appeal is one against a strike, or, without one, about the service, a moment after everything else.
func (s shelf) appeal(t *testing.T, strike uuid.UUID) Appeal {
	t.Helper()
	pgtest.Shift(t, s.db, time.Second)
	a, err := s.review().Appeal(t.Context(), s.service.Slug, provider, catalog.AppealDraft{Strike: strike, Text: "it was your proxy"})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Shift(t, s.db, time.Second)
	return a
}

// answers returns what answered the appeals of the service, the newest first; empty for one that waits.
func (s shelf) answers(t *testing.T) (all []audit.Action) {
	t.Helper()
	appeals, err := Appeals(t.Context(), s.db, s.service.ID, uuid.UUID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range appeals {
		if a.Answer == nil {
			all = append(all, "")
			continue
		}
		all = append(all, a.Answer.Action)
	}
	return all
}

func (s shelf) wantAnswers(t *testing.T, when string, want ...audit.Action) {
	t.Helper()
	got := s.answers(t)
	if len(got) != len(want) {
		t.Errorf("%s: answers %q, want %q", when, got, want)
		return
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: answers %q, want %q", when, got, want)
			return
		}
	}
}

func TestReview_Appeal_IsKeptAndStandsBesideItsStrike(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, 2)
	all := s.rows(t)
	made := s.appeal(t, all[1].ID)
	s.appeal(t, uuid.UUID{})
	of, err := AppealsOf(t.Context(), s.db, []uuid.UUID{all[0].ID, all[1].ID})
	if err != nil || len(of) != 1 || len(of[all[1].ID]) != 1 {
		t.Fatalf("appeals by strike: %v, %v", of, err)
	}
	if got := of[all[1].ID][0]; got != made || got.Text != "it was your proxy" || got.By != provider || !got.At.Equal(s.opened.Add(rest+time.Second)) || got.Answer != nil {
		t.Errorf("appeal = %+v, made as %+v", got, made)
	}
}

func TestReview_Appeal_IsAnsweredByTheDecisionOnItsStrike(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	all := s.rows(t)
	s.appeal(t, all[0].ID)
	s.appeal(t, all[1].ID)
	if _, err := s.review().Uphold(t.Context(), all[0].ID, catalog.AdminToken, "plain"); err != nil {
		t.Fatal(err)
	}
	s.wantAnswers(t, "after one was upheld", "", audit.Uphold)
	s.relist(t)
	s.wantAnswers(t, "relisted", audit.Relist, audit.Uphold)
}

// What is said about the service is answered by what changes its state, or by a decision on each of the strikes that took it off the shelf.
func TestReview_Appeal_AboutTheServiceIsAnsweredByWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(s shelf)
		want audit.Action
	}{
		"nothing":        {func(shelf) {}, ""},
		"a relisting":    {func(s shelf) { s.relist(t) }, audit.Relist},
		"a void":         {func(s shelf) { s.void(t, s.rows(t)[0].ID) }, audit.Void},
		"one upheld":     {func(s shelf) { s.uphold(t, 1) }, ""},
		"all but one":    {func(s shelf) { s.uphold(t, 2) }, ""},
		"all are upheld": {func(s shelf) { s.uphold(t, 3) }, audit.Uphold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.incidents(t, policy.Limit)
			s.appeal(t, uuid.UUID{})
			tt.do(s)
			s.wantAnswers(t, name, tt.want)
		})
	}
}

// uphold upholds the first n strikes.
func (s shelf) uphold(t *testing.T, n int) {
	t.Helper()
	for _, f := range s.rows(t)[:n] {
		if _, err := s.review().Uphold(t.Context(), f.ID, catalog.AdminToken, "plain"); err != nil {
			t.Fatal(err)
		}
	}
}

// An appeal about the service reopens each decision that is older, once.
func TestReview_Appeal_AboutTheServiceReopensADecisionOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	strike := s.rows(t)[0].ID
	s.uphold(t, 1)
	s.appeal(t, uuid.UUID{})
	s.uphold(t, 1)
	_, err := s.review().Uphold(t.Context(), strike, catalog.AdminToken, "and again")
	wantConflict(t, "a second time", err, "upheld already")
}

func TestReview_Appeal_OnlyAgainstWhatCanBeAppealedAgainst(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	all := s.rows(t)
	s.void(t, all[0].ID)
	appeal := func(strike uuid.UUID) error {
		_, err := s.review().Appeal(t.Context(), s.service.Slug, provider, catalog.AppealDraft{Strike: strike, Text: "no"})
		return err
	}
	wantConflict(t, "against what is void", appeal(all[0].ID), "voided")
	if err := appeal(uuid.Must(uuid.NewV7())); !refusedFor(err, call.NotFound) {
		t.Errorf("against no strike of it: %v", err)
	}
	if _, err := s.review().Appeal(t.Context(), "nobody", provider, catalog.AppealDraft{Text: "no"}); !refusedFor(err, call.NotFound) {
		t.Errorf("of no service: %v", err)
	}
	for range appealsWaitingMax {
		if err := appeal(all[1].ID); err != nil {
			t.Fatal(err)
		}
	}
	wantConflict(t, "one more than may wait", appeal(all[2].ID), "20 appeals")
	pgtest.Shift(t, s.db, time.Second)
	s.void(t, all[1].ID)
	if err := appeal(all[2].ID); err != nil {
		t.Errorf("after they were answered: %v", err)
	}
	if _, err := (catalog.Store{}).Retire(t.Context(), s.db, s.service.ID, catalog.AdminToken, "gives up"); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, "of what is retired", appeal(uuid.UUID{}), "retired")
}

func TestAppeals_AreKeptAsTheyCame(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.appeal(t, uuid.UUID{})
	for _, sql := range []string{`UPDATE appeals SET text = 'I agree'`, `DELETE FROM appeals`, `TRUNCATE appeals`} {
		if _, err := s.db.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: it can be done", sql)
		}
	}
}

func (s shelf) leave(t *testing.T) (Decision, error) {
	t.Helper()
	_, d, err := s.review().UpholdService(t.Context(), s.service.Slug, Order{By: catalog.AdminToken, Reason: "we looked at it"})
	return d, err
}

// measuredHold is a hold that no strike made.
var measuredHold = catalog.Change{Cause: catalog.CauseReview, By: catalog.System, Reason: "it throttles"}

// Each appeal can be answered, wherever the service is, without being moved.
func TestReview_UpholdService_AnswersAnAppealAndLeavesTheService(t *testing.T) {
	t.Parallel()
	for state, to := range map[catalog.State]func(s shelf){
		catalog.Listed:    func(shelf) {},
		catalog.Suspended: func(s shelf) { s.suspend(t) },
		catalog.Held:      func(s shelf) { s.move(t, measuredHold) },
		catalog.Delisted:  func(s shelf) { s.incidents(t, policy.Limit-1) },
	} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.fail(t)
			pgtest.Shift(t, s.db, rest)
			to(s)
			before := s.wantState(t, "before", state)
			_, err := s.leave(t)
			wantConflict(t, "without an appeal", err, "no appeal about the service itself waits")

			strike := s.rows(t)[0]
			s.appeal(t, strike.ID)
			s.appeal(t, uuid.UUID{})
			d, err := s.leave(t)
			if err != nil || d.Action != audit.Uphold || d.Strike != nil || !strings.Contains(d.Effect(), "The appeals about the service are answered.") {
				t.Errorf("%+v, %v: %s", d, err, d.Effect())
			}
			s.wantAnswers(t, "after it was left", audit.Uphold, "")
			after := s.wantState(t, "after it was left", state)
			if !after.StateSince.Equal(before.StateSince) || s.rows(t)[0] != strike {
				t.Errorf("since %s, before since %s; %+v", after.StateSince, before.StateSince, s.rows(t))
			}
			entries, _, _, err := audit.Store{}.List(t.Context(), s.db, s.service.ID, 1, "")
			if err != nil || len(entries) != 1 || entries[0].Subject != audit.Service("weather") || entries[0].Reason != "we looked at it" {
				t.Errorf("the audit has %+v, %v", entries, err)
			}
			_, err = s.leave(t)
			wantConflict(t, "a second admin", err, "no appeal", "uphold", "by admin token at ", "we looked at it")
		})
	}
}

// Whoever has said enough about the one may still speak about the other.
func TestReview_Appeal_ThoseAboutTheServiceAndThoseAgainstStrikesAreBoundedApart(t *testing.T) {
	t.Parallel()
	for name, kinds := range map[string]func(strike uuid.UUID) (full, free uuid.UUID){
		"about the service": func(strike uuid.UUID) (full, free uuid.UUID) { return uuid.UUID{}, strike },
		"against strikes":   func(strike uuid.UUID) (full, free uuid.UUID) { return strike, uuid.UUID{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.fail(t)
			full, free := kinds(s.rows(t)[0].ID)
			for range appealsWaitingMax {
				s.appeal(t, full)
			}
			_, err := s.review().Appeal(t.Context(), s.service.Slug, provider, catalog.AppealDraft{Strike: full, Text: "no"})
			wantConflict(t, "one more", err, "20 appeals "+name[:5])
			s.appeal(t, free)
		})
	}
}

// Only a decision on what took the service off the shelf answers for its being off it.
func TestReview_Appeal_AboutAServiceThatStrikesDidNotTakeOffIsNotAnsweredByAStrike(t *testing.T) {
	t.Parallel()
	s := newShelf(t).needing(2)
	s.incidents(t, policy.Limit)
	s.wantState(t, "with three strikes of one network", catalog.Held)
	pgtest.Shift(t, s.db, time.Second)
	s.relist(t) // which settles that departure
	pgtest.Shift(t, s.db, time.Second)
	s.fail(t)
	s.move(t, measuredHold)
	s.appeal(t, uuid.UUID{})
	if _, err := s.review().Uphold(t.Context(), s.rows(t)[policy.Limit].ID, catalog.AdminToken, "plain"); err != nil {
		t.Fatal(err)
	}
	s.wantAnswers(t, "after a strike was upheld that did not hold it", "")
}

func TestReview_Appeal_AboutAServiceThatStrikesHoldIsAnsweredByTheDecisionsOnThem(t *testing.T) {
	t.Parallel()
	s := newShelf(t).needing(2)
	s.incidents(t, policy.Limit)
	s.wantState(t, "with three strikes of one network", catalog.Held)
	s.appeal(t, uuid.UUID{})
	s.uphold(t, policy.Limit-1)
	s.wantAnswers(t, "after all but one were upheld", "")
	for _, f := range s.rows(t)[policy.Limit-1:] {
		if _, err := s.review().Uphold(t.Context(), f.ID, catalog.AdminToken, "plain"); err != nil {
			t.Fatal(err)
		}
	}
	s.wantAnswers(t, "after all were upheld", audit.Uphold)
}

// A void may leave held what was delisted; the strikes of the delisting hold it then.
func TestReview_Appeal_AboutAServiceThatAVoidLeftHeldIsAnsweredByTheDecisionsOnTheStrikesThatStay(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	p := policy
	p.Sources, p.Fold = 2, 0
	r := s.counting(s.recorder.jobs, p, rest)
	var all []Delivery
	for _, from := range []string{"192.0.2.1", "192.0.2.1", "203.0.113.1", "192.0.2.1"} {
		all = append(all, s.asked(t).called(from).failed())
	}
	for _, d := range all {
		if err := r.Record(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		pgtest.Shift(t, s.db, time.Second)
	}
	s.wantState(t, "by strikes of two networks", catalog.Delisted)
	rows := s.rows(t)
	s.void(t, rows[2].ID)
	s.wantState(t, "without those of the second", catalog.Held)
	s.appeal(t, uuid.UUID{})
	for i, n := range []int{0, 1, 3} {
		s.wantAnswers(t, "before all were upheld", "")
		if _, err := s.review().Uphold(t.Context(), rows[n].ID, catalog.AdminToken, "plain"); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	s.wantAnswers(t, "after all were upheld", audit.Uphold)
}
