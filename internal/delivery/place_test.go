package delivery

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestStreams_OfManyThatComeAtOnceNotOneTooManyIsTaken(t *testing.T) {
	t.Parallel()
	var (
		s     streams
		wg    sync.WaitGroup
		taken atomic.Int64
	)
	for range 200 {
		wg.Go(func() {
			if s.take(7) {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	if taken.Load() != 7 || !s.full(7) || s.full(8) {
		t.Errorf("%d were taken, want 7; full = %v", taken.Load(), s.full(7))
	}
}
