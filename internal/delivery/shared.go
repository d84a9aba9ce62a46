package delivery

import (
	"context"
	"sync"
	"time"
)

const (
	// sharedAge is how old a shared value may get before somebody who looks has it read again; after readings that went wrong it is left alone for
	// twice as long each time, up to sharedBackOff.
	sharedAge     = 20 * time.Second
	sharedBackOff = 10 * time.Minute
	// sharedTime bounds a reading, and sharedWait how long who looks waits for one.
	sharedTime = 10 * time.Second
	sharedWait = 2 * time.Second
)

// A shared value is read by one for all who look at it, when somebody looks, and is kept for a while. The zero one has read nothing.
type shared[T any] struct {
	mu      sync.Mutex
	value   T
	at      time.Time     // of value; zero: there is none
	due     time.Time     // when it is to be read again
	wrong   int           // readings in a row that went wrong
	reading chan struct{} // closed when the reading that is under way ends; nil: none is
}

// A reader says how shared values are read.
type reader struct {
	now func() time.Time
	// onError hears of a reading that went wrong; those who look see what was read before.
	onError func(error)
	// places bounds how many readings are under way at a time; nil: nothing does.
	places chan struct{}
}

// look returns the value and when it was read, which is zero where nothing was. Who comes while it is read gets what was read before, and waits
// only where nothing was, and not for long.
func (s *shared[T]) look(ctx context.Context, r reader, read func(context.Context) (T, error)) (T, time.Time) {
	s.mu.Lock()
	reading := s.reading
	switch {
	case reading == nil && r.now().Before(s.due), reading != nil && !s.at.IsZero():
		defer s.mu.Unlock()
		return s.value, s.at
	case reading == nil:
		reading = make(chan struct{})
		s.reading = reading
		// It goes on when the one who came first leaves.
		go s.read(context.WithoutCancel(ctx), r, read)
	}
	s.mu.Unlock()
	wait := time.NewTimer(sharedWait)
	defer wait.Stop()
	select {
	case <-reading:
	case <-wait.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value, s.at
}

func (s *shared[T]) read(ctx context.Context, r reader, read func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	value, err := inPlace(ctx, r.places, read)
	if err != nil {
		r.onError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := r.now()
	if err != nil {
		s.due = now.Add(min(sharedBackOff, sharedAge<<min(s.wrong, 10)))
		s.wrong++
	} else {
		s.value, s.at, s.due, s.wrong = value, now, now.Add(sharedAge), 0
	}
	close(s.reading)
	s.reading = nil
}

// inPlace reads once there is a place.
func inPlace[T any](ctx context.Context, places chan struct{}, read func(context.Context) (T, error)) (T, error) {
	if places != nil {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
	return read(ctx)
}
