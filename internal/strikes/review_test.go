package strikes_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

// ids returns the strikes of the service in the order of their opening.
func (s shelf) ids(t *testing.T) (all []uuid.UUID) {
	t.Helper()
	rows, err := s.db.Query(t.Context(), `SELECT id FROM strikes WHERE service_id = $1 ORDER BY opened_at, id`, s.service.ID)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	return all
}

func TestStore_Void_OfOpenAndClearedOnesOnly(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	_, delivery := s.mustFail(t, folding, s.opened)
	if _, err := s.db.Exec(t.Context(), clearSQL, s.service.ID, delivery); err != nil {
		t.Fatal(err)
	}
	pgtest.Shift(t, s.db, fold)
	s.mustFail(t, folding, s.opened.Add(fold))
	for i, id := range s.ids(t) {
		for try, want := range []bool{true, false} {
			if voided, err := folding.Void(t.Context(), s.db, id); err != nil || voided != want {
				t.Errorf("strike %d, try %d: voided = %v, %v; want %v", i, try, voided, err, want)
			}
		}
	}
	if n, err := folding.Archive(t.Context(), s.db, s.service.ID); err != nil || n != 0 {
		t.Errorf("%d were open, %v", n, err)
	}
	for i, r := range s.rows(t) {
		if r.State != "voided" {
			t.Errorf("strike %d is %s", i, r.State)
		}
	}
}

// What was closed folds what was asked before, and nothing later.
func TestStore_Add_JoinsWhatAReviewClosedIfAskedBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fromReview time.Duration
		opens      bool
	}{
		"asked just before the review joins":       {-time.Microsecond, false},
		"asked at the same moment is another":      {0, true},
		"asked after it, within the fold, another": {time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.mustFail(t, folding, s.opened)
			pgtest.Shift(t, s.db, fold/2)
			if _, err := folding.Void(t.Context(), s.db, s.ids(t)[0]); err != nil {
				t.Fatal(err)
			}
			pgtest.Shift(t, s.db, fold)
			opened, _ := s.mustFail(t, folding, s.opened.Add(fold/2+tt.fromReview))
			if n := s.countOpen(t, folding); opened != tt.opens || n != map[bool]int{true: 1}[tt.opens] {
				t.Errorf("opened = %v, want %v; %d count", opened, tt.opens, n)
			}
			if got := s.rows(t)[0]; got.State != "voided" {
				t.Errorf("the voided strike is %s", got.State)
			}
		})
	}
}

func TestStore_Archive_ClosesWhatIsOpen(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustFail(t, counting, s.opened)
	s.mustFail(t, counting, s.opened)
	if n, err := counting.Archive(t.Context(), s.db, s.service.ID); err != nil || n != 2 {
		t.Errorf("%d were archived, %v; want 2", n, err)
	}
	if n := s.countOpen(t, counting); n != 0 {
		t.Errorf("%d count", n)
	}
}

func TestPolicy_Worst_IsTheGravestOfSeveralMoments(t *testing.T) {
	t.Parallel()
	p := strikes.Policy{Limit: 3, Sources: 2}
	for name, tt := range map[string]struct {
		counts []strikes.Count
		want   strikes.Verdict
	}{
		"no moment":                {nil, strikes.Stays},
		"too few at each":          {[]strikes.Count{{Open: 2, Sources: 2}, {Open: 1, Sources: 1}}, strikes.Stays},
		"enough of too few":        {[]strikes.Count{{Open: 2, Sources: 2}, {Open: 3, Sources: 1}}, strikes.Holds},
		"enough, and later not":    {[]strikes.Count{{Open: 3, Sources: 2}, {Open: 2, Sources: 1}}, strikes.Delists},
		"held first and more then": {[]strikes.Count{{Open: 3, Sources: 1}, {Open: 4, Sources: 2}}, strikes.Delists},
	} {
		if got := p.Worst(tt.counts); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
