package delivery

import (
	"testing"
	"time"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

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
