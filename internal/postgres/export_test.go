package postgres

import (
	"context"
	"time"
)

// WatchIdle is Watch that takes a connection for idle after another time.
func WatchIdle(ctx context.Context, idle time.Duration, databaseURL string, channels []string, on func(string), lost func(error)) {
	w := newWatch(databaseURL, channels)
	w.idle = idle
	w.run(ctx, on, lost)
}

// MigrateLock is the advisory lock that Migrate takes.
const MigrateLock = migrateLock

// NewWatch is Watch before it runs, so that a test can see what waits.
func NewWatch(databaseURL string, channels []string) *watch { return newWatch(databaseURL, channels) }

// Run is what Watch does.
func (w *watch) Run(ctx context.Context, on func(channel string), lost func(error)) {
	w.run(ctx, on, lost)
}

// Marked says whether a channel waits to be called for.
func (w *watch) Marked(channel string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dirty[channel]
}
