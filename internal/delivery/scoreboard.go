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

	scores  shared[map[uuid.UUID]Tally]
	of      sharedOf[[]Tally]
	figures sharedOf[[]Measured]
}

// A sharedOf holds one shared value a service.
type sharedOf[T any] struct {
	mu  sync.Mutex
	all map[uuid.UUID]*shared[T]
}

func (s *sharedOf[T]) one(service uuid.UUID) *shared[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[service] == nil {
		if s.all == nil {
			s.all = map[uuid.UUID]*shared[T]{}
		}
		s.all[service] = &shared[T]{}
	}
	return s.all[service]
}

// NewScoreboard returns one that has read nothing yet. onError hears of readings that went wrong, maybe of several at a time.
func NewScoreboard(db *pgxpool.Pool, now func() time.Time, onError func(error)) *Scoreboard {
	return &Scoreboard{db: db,
		all: reader{now: now, onError: onError}, ones: reader{now: now, onError: onError, places: make(chan struct{}, tallyPlaces)}}
}

// All returns the tally of every service within ScoreWindow, and when it was read: zero where it could not be. The map is shared and must not be
// changed.
func (s *Scoreboard) All(ctx context.Context) (map[uuid.UUID]Tally, time.Time) {
	return s.scores.look(ctx, s.all, func(ctx context.Context) (map[uuid.UUID]Tally, error) { return talliesOfAll(ctx, s.db) })
}

// Of returns the tallies of a service that exists in the windows of 24 hours, 7 and 30 days, and when they were read: zero where they could not be.
func (s *Scoreboard) Of(ctx context.Context, service uuid.UUID) ([]Tally, time.Time) {
	return s.of.one(service).look(ctx, s.ones, func(ctx context.Context) ([]Tally, error) { return talliesOfOne(ctx, s.db, service) })
}

// Figures returns what was measured of a service that exists in the windows of 24 hours, 7 and 30 days, and when it was read: zero where it could
// not be.
func (s *Scoreboard) Figures(ctx context.Context, service uuid.UUID) ([]Measured, time.Time) {
	return s.figures.one(service).look(ctx, s.ones, func(ctx context.Context) ([]Measured, error) {
		return measuredOf(ctx, s.db, service, MeasuredCalls)
	})
}
