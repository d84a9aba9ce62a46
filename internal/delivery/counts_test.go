package delivery

import (
	"testing"
	"time"

	"market/internal/postgres/pgtest"
	"market/internal/strikes"
)

func (s shelf) countsSince(t *testing.T, since time.Time) []strikes.Count {
	t.Helper()
	counts, err := countsSince(t.Context(), s.db, s.service.ID, since, policy.Window)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func TestCountsSince_AStrikeCountsAtAMomentInsideItsWindow(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.fail(t)
	for name, tt := range map[string]struct {
		at   time.Duration // from its opening
		want int
	}{
		"before it opened":        {-time.Microsecond, 0},
		"when it opened":          {0, 1},
		"just inside the window":  {policy.Window - time.Microsecond, 1},
		"exactly a window later":  {policy.Window, 0},
		"just outside the window": {policy.Window + time.Microsecond, 0},
	} {
		got := s.countsSince(t, s.opened.Add(tt.at))[0]
		if !got.At.Equal(s.opened.Add(tt.at)) || got.Open != tt.want || got.Sources != tt.want {
			t.Errorf("%s: %+v, want %d of as many sources", name, got, tt.want)
		}
	}
}

// What can change a verdict for the worse is another strike, or evidence from another network.
func TestCountsSince_EachLaterStrikeAndEachOtherNetworkIsAMoment(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, 2)
	same, another := s.trial(t).called("192.0.2.200").failed(), s.trial(t).called("203.0.113.1").failed()
	same.AskedAt, another.AskedAt = s.opened, s.opened // they join the second
	pgtest.Shift(t, s.db, time.Second)
	s.record(t, same)
	s.record(t, another)
	pgtest.Shift(t, s.db, rest)
	s.fail(t)
	s.void(t, s.rows(t)[0].ID)

	second := s.opened.Add(rest)
	want := []strikes.Count{{At: s.opened}, {At: second, Open: 1, Sources: 1}, {At: second.Add(time.Second), Open: 1, Sources: 2},
		{At: second.Add(time.Second + rest), Open: 2, Sources: 2}}
	got := s.countsSince(t, s.opened)
	if len(got) != len(want) {
		t.Fatalf("counts = %+v, want %+v", got, want)
	}
	for i := range want {
		if !got[i].At.Equal(want[i].At) || got[i].Open != want[i].Open || got[i].Sources != want[i].Sources {
			t.Errorf("count %d = %+v, want %+v", i, got[i], want[i])
		}
	}
}
