package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tallyPlaces is how many records of single services are read at a time: whoever looks at pages, however many, takes no more connections from
// those who pay.
const tallyPlaces = 2

// A Scoreboard holds the tallies of services in memory, so that many who look at them cost one reading of the database. It is read when somebody
// looks, and never in the way of a call.
type Scoreboard struct {
	db   *pgxpool.Pool
	all  reader
	ones reader

	scores shared[map[uuid.UUID]Tally]
	mu     sync.Mutex
	of     map[uuid.UUID]*shared[[]Tally]
}

// NewScoreboard returns one that has read nothing yet. onError hears of readings that went wrong, maybe of several at a time.
func NewScoreboard(db *pgxpool.Pool, now func() time.Time, onError func(error)) *Scoreboard {
	return &Scoreboard{db: db, of: map[uuid.UUID]*shared[[]Tally]{},
		all: reader{now: now, onError: onError}, ones: reader{now: now, onError: onError, places: make(chan struct{}, tallyPlaces)}}
}

// All returns the tally of every service within ScoreWindow, and when it was read: zero where it could not be. The map is shared and must not be
// changed.
func (s *Scoreboard) All(ctx context.Context) (map[uuid.UUID]Tally, time.Time) {
	return s.scores.look(ctx, s.all, func(ctx context.Context) (map[uuid.UUID]Tally, error) { return talliesOfAll(ctx, s.db) })
}

// Of returns the tallies of a service that exists in the windows of 24 hours, 7 and 30 days, and when they were read: zero where they could not be.
func (s *Scoreboard) Of(ctx context.Context, service uuid.UUID) ([]Tally, time.Time) {
	s.mu.Lock()
	one := s.of[service]
	if one == nil {
		one = &shared[[]Tally]{}
		s.of[service] = one
	}
	s.mu.Unlock()
	return one.look(ctx, s.ones, func(ctx context.Context) ([]Tally, error) { return talliesOfOne(ctx, s.db, service) })
}
