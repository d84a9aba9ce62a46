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
	scoresTime = 5 * time.Second
)

// A Scoreboard holds the tally of every service in memory, so that many who look at the catalog cost one reading of the database. It is read when
// somebody looks, and never in the way of a call.
type Scoreboard struct {
	db  postgres.DB
	now func() time.Time
	// onError hears of a reading that went wrong; those who look see what was read before.
	onError func(error)

	reading sync.Mutex // held by whoever reads the database
	mu      sync.Mutex
	at      time.Time // of the last reading, also of one that went wrong
	read    map[uuid.UUID]Tally
}

// NewScoreboard returns one that has read nothing yet.
func NewScoreboard(db postgres.DB, now func() time.Time, onError func(error)) *Scoreboard {
	return &Scoreboard{db: db, now: now, onError: onError}
}

// Tallies returns the tally of every service that was called within ScoreWindow. The map is shared and must not be changed.
func (s *Scoreboard) Tallies(ctx context.Context) map[uuid.UUID]Tally {
	read, first, old := s.last()
	if !old {
		return read
	}
	// One reads for all. Who comes meanwhile sees what was read before, and waits only where nothing was.
	if first {
		s.reading.Lock()
	} else if !s.reading.TryLock() {
		return read
	}
	defer s.reading.Unlock()
	if read, _, old = s.last(); !old {
		return read
	}
	// It goes on when the one who came first leaves.
	ctx, cancel := detached(ctx, scoresTime)
	defer cancel()
	next, err := talliesOfAll(ctx, s.db)
	if err != nil {
		s.onError(err)
		next = read
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.read = s.now(), next
	return next
}

// last returns what was read last, and whether that is nothing yet, or old.
func (s *Scoreboard) last() (read map[uuid.UUID]Tally, first, old bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read, s.at.IsZero(), s.at.IsZero() || s.now().Sub(s.at) >= scoresAge
}
