package app

import (
	"context"
	"net/http"
)

// Kill stops the program as if its process were killed, for tests: connections break, nobody is waited for, and nothing more is written to the
// database. What is under way ends with errors; Stop waits for that.
func (p *process) Kill() {
	p.killed.Store(true)
	go p.db.Close() // returns when the last statement ends; no new one begins
	p.background()
	for _, s := range []*http.Server{p.public, p.ops} {
		_ = s.Close()
	}
}

// Killed says whether Kill was called.
func (p *process) Killed() bool { return p.killed.Load() }

// LookAtTraffic looks once where traffic comes from, for tests. That is done every minute anyway.
func (a *App) LookAtTraffic(ctx context.Context) { a.lookAtTraffic(ctx) }

// Loops are the names of the work that runs beside the calls and is watched, for tests.
func (a *App) Loops() []string { return a.loops.Names() }

// SweepOnce runs one round of the sweeper now, for tests. One runs every second anyway.
func (a *App) SweepOnce(ctx context.Context) error { return a.path.SweepOnce(ctx) }

// HoldOnce looks once for services that are to be held for review, for tests. That happens once a minute anyway.
func (a *App) HoldOnce(ctx context.Context) error {
	told, err := a.holder().Once(ctx)
	for _, notice := range told {
		a.tellHeld(notice)
	}
	return err
}
