package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"market/internal/postgres"
)

const (
	// scoresAge is how old the tallies of all services may get before a reader has them read again; scoresTime bounds the reading.
	scoresAge  = 20 * time.Second
	scoresTime = 3 * time.Second
)

// A Scoreboard holds the tally of every service in memory, so that many who look at the catalog cost one reading of the database. It is read when
// somebody looks, and never in the way of a call.
type Scoreboard struct {
	db  postgres.DB
	now func() time.Time
	// onError hears of a reading that went wrong; those who look see what was read before.
	onError func(error)

	mu   sync.Mutex
	at   time.Time // of the last reading, also of one that went wrong
	read map[uuid.UUID]Tally
}

// NewScoreboard returns one that has read nothing yet.
func NewScoreboard(db postgres.DB, now func() time.Time, onError func(error)) *Scoreboard {
	return &Scoreboard{db: db, now: now, onError: onError}
}

// Tallies returns the tally of every service that was called within ScoreWindow. The map is shared and must not be changed.
func (s *Scoreboard) Tallies(ctx context.Context) map[uuid.UUID]Tally {
	// Whoever comes while it is read waits for it: one reading is the same for all.
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.at.IsZero() && s.now().Sub(s.at) < scoresAge {
		return s.read
	}
	s.at = s.now()
	// It is read for everybody, so it goes on when the one who came first leaves.
	ctx, cancel := detached(ctx, scoresTime)
	defer cancel()
	read, err := talliesOfAll(ctx, s.db)
	if err != nil {
		s.onError(err)
		return s.read
	}
	s.read = read
	return s.read
}
