package cooldown_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/cooldown"
	"market/internal/postgres/pgtest"
)

// A clock is a process's own, which need not agree with the database's.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func load(t *testing.T, b *cooldown.Board, s shelf) {
	t.Helper()
	if err := b.Load(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
}

func wantRemaining(t *testing.T, b *cooldown.Board, service uuid.UUID, when string, want time.Duration) {
	t.Helper()
	if got := b.Remaining(service); got != want {
		t.Errorf("%s: %s remain, want %s", when, got, want)
	}
}

func TestBoard_Remaining_CountsInMarketTimeWhateverTheOwnClockSays(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustStart(t, s.opened, rest)
	own := &clock{time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)}
	b := cooldown.NewBoard(own.now)
	wantRemaining(t, b, s.service.ID, "before the first load", 0)

	load(t, b, s)
	wantRemaining(t, b, s.service.ID, "at its start", rest)
	wantRemaining(t, b, uuid.Must(uuid.NewV7()), "another service", 0)
	own.at = own.at.Add(rest - time.Microsecond)
	wantRemaining(t, b, s.service.ID, "just before its end", time.Microsecond)
	own.at = own.at.Add(time.Microsecond)
	wantRemaining(t, b, s.service.ID, "exactly at its end", 0)
	own.at = own.at.Add(time.Hour)
	wantRemaining(t, b, s.service.ID, "long after its end", 0)
}

func TestBoard_Load_FollowsAShiftedMarketClock(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustStart(t, s.opened, rest)
	own := &clock{time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)}
	b := cooldown.NewBoard(own.now)
	load(t, b, s)

	pgtest.Shift(t, s.db, rest-time.Microsecond)
	load(t, b, s)
	wantRemaining(t, b, s.service.ID, "shifted to just before its end", time.Microsecond)
	pgtest.Shift(t, s.db, time.Microsecond)
	load(t, b, s)
	wantRemaining(t, b, s.service.ID, "shifted to its end", 0)

	s.mustStart(t, s.opened.Add(rest), 2*rest)
	load(t, b, s)
	wantRemaining(t, b, s.service.ID, "started anew", 2*rest)
}

func TestBoard_Load_AfterAnErrorTheOldBoardStays(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.mustStart(t, s.opened, rest)
	own := &clock{s.opened}
	b := cooldown.NewBoard(own.now)
	load(t, b, s)
	if _, err := s.db.Exec(t.Context(), `ALTER TABLE cooldowns RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(t.Context(), s.db); err == nil {
		t.Fatal("a load without its table succeeds")
	}
	wantRemaining(t, b, s.service.ID, "after a load that went wrong", rest)
}
