package delivery

import (
	"testing"
	"time"

	"market/internal/call"
	"market/internal/postgres/pgtest"
)

// A rest runs on where another failure of the service's own doing fell into it, that would have started one.
func TestReview_Void_LeavesARestThatAnotherFailureNeeds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		other func(d Delivery) Delivery // a call that was under way when the first failed
		need  bool
	}{
		"a failure":                       {Delivery.failed, true},
		"a failure that is no strike":     {func(d Delivery) Delivery { return d.end(call.UpstreamThrottled, "") }, true},
		"a success":                       {Delivery.served, false},
		"a failure of ours":               {func(d Delivery) Delivery { return d.end(call.LocalError, "") }, false},
		"a failure that our own call met": {func(d Delivery) Delivery { return d.from(call.Own).failed() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			p := policy
			p.Fold = 0
			s.recorder = s.counting(s.recorder.jobs, p, rest)
			underWay := tt.other(s.asked(t))
			s.fail(t)
			pgtest.Shift(t, s.db, time.Second)
			s.record(t, underWay)
			s.void(t, s.rows(t)[0].ID)
			want := map[bool]time.Duration{true: rest - time.Second}[tt.need]
			if left := s.rests(t); left != want {
				t.Errorf("it rests for %s more, want %s", left, want)
			}
		})
	}
}

// Of several strikes that need one rest, the last that is voided ends it, whichever began it.
func TestReview_Void_OfTheLastStrikeThatNeedsARestEndsIt(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]int{"the one that began it first": {0, 1}, "the one that began it last": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.literal(t, 2)
			all := s.rows(t)
			s.void(t, all[order[0]].ID)
			if left := s.rests(t); left != rest-2*time.Second {
				t.Errorf("with one of two void it rests for %s, want %s", left, rest-2*time.Second)
			}
			s.void(t, all[order[1]].ID)
			if left := s.rests(t); left != 0 {
				t.Errorf("with both void it rests for %s", left)
			}
		})
	}
}
