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
