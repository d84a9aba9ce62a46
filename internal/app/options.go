package app

import (
	"time"

	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/refund"
	"market/internal/upstream"
	"market/internal/watch"
)

// An Option changes how an App is put together. They are for tests, which put a facilitator between us and our engine that lies, loses
// what it was told or is somebody else's, or have less patience; the program itself has none.
type Option func(*App)

// A Wrap puts something around the engine of a network.
type Wrap func(network string, engine delivery.Settler) delivery.Settler

type wraps struct{ settler, sender Wrap }

// WithSettler settles callers' payments through another facilitator. It is not ours, so its word is checked.
func WithSettler(w Wrap) Option { return func(a *App) { a.wraps.settler = w } }

// WithSender sends refunds through another facilitator. What became of them is read from the chain anyway.
func WithSender(w Wrap) Option { return func(a *App) { a.wraps.sender = w } }

// WithStreamLimits bounds otherwise what a caller may cost while it reads a stream.
func WithStreamLimits(l delivery.StreamLimits) Option { return func(a *App) { a.streams = l } }

// WithResolver looks the names of services up in another way.
func WithResolver(r upstream.Resolver) Option { return func(a *App) { a.resolver = r } }

// WithClock gives the program a clock of its own, which may be wrong.
func WithClock(now func() time.Time) Option { return func(a *App) { a.now = now } }

// WithPace looks more often for what has stopped, and waits less until it tells.
func WithPace(p watch.Pace) Option { return func(a *App) { a.pace = p } }

// WithReadyAge uses for longer what is known of the networks, where nothing says what may be lost: tests share their machine with others.
func WithReadyAge(d time.Duration) Option { return func(a *App) { a.readyAge = d } }

// Guarded lets services be at public addresses alone, in development mode too.
func Guarded() Option { return func(a *App) { a.guarded = true } }

func (w wraps) around(r rail) (delivery.Settler, delivery.Words, refund.Sender) {
	var (
		settler delivery.Settler = r.failover
		sender  refund.Sender    = r.failover
		words   delivery.Words
	)
	if r.failover.Believable() {
		words = r.failover
	}
	if w.settler != nil {
		settler, words = facilitator.NewChecked(w.settler(r.network.ID, r.failover), r.node), nil
	}
	if w.sender != nil {
		sender = w.sender(r.network.ID, r.failover)
	}
	return settler, words, sender
}
