package app

import (
	"context"
	"net/http"
)

// Kill stops the App as if its process were killed, for tests: connections break, nobody is waited for, and nothing more is written to the
// database. What is under way ends with errors; Stop waits for that.
func (a *App) Kill() {
	a.killed.Store(true)
	go a.db.Close() // returns when the last statement ends; no new one begins
	a.background()
	for _, s := range []*http.Server{a.public, a.ops} {
		_ = s.Close()
	}
}

// Killed says whether Kill was called.
func (a *App) Killed() bool { return a.killed.Load() }

// SweepOnce runs one round of the sweeper now, for tests. One runs every second anyway.
func (a *App) SweepOnce(ctx context.Context) error { return a.path.SweepOnce(ctx) }
