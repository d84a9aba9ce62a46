package delivery

import (
	"context"
	"time"

	"market/internal/pulse"
)

// Every does something every so often until ctx ends, for the first time when that has passed. What takes longer is not made up for.
func Every(ctx context.Context, d time.Duration, do func(context.Context)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
			pulse.Beat(ctx, d)
		}
	}
}
