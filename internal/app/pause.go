package app

import (
	"context"
	"time"

	"market/internal/pulse"
)

// ownersPause is the least time from one reload of the owners to the next: what changes them, such as an address that is new, strangers can do as often
// as they like.
const ownersPause = time.Second

// A spaced does something when it is asked to, and then rests: what is asked for meanwhile is done once, after the rest.
type spaced struct {
	wanted chan struct{} // holds one
	rest   time.Duration
	do     func()
}

func newSpaced(rest time.Duration, do func()) *spaced {
	return &spaced{wanted: make(chan struct{}, 1), rest: rest, do: do}
}

// ask never waits.
func (s *spaced) ask() {
	select {
	case s.wanted <- struct{}{}:
	default: // it is going to be done
	}
}

func (s *spaced) run(ctx context.Context) {
	beat := time.NewTicker(reloadEvery)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			pulse.Beat(ctx, reloadEvery)
			continue
		case <-s.wanted:
		}
		s.do()
		pulse.Beat(ctx, reloadEvery)
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.rest):
		}
	}
}
