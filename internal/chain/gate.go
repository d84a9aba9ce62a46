package chain

import (
	"context"
	"time"
)

// A Gate stands before one endpoint. It says whether the endpoint may be asked now, and hears what came of it: who keeps count of what the endpoint
// sells and of what it refuses is behind it.
type Gate interface {
	// Begin asks for a number of calls. An error is the no, and nothing is sent; it should be a *HeldError where it is known until when. Every
	// round trip asks, so a no that holds for long has to come without a query.
	Begin(ctx context.Context, calls int) (Turn, error)
}

// A Turn is one round trip that a gate has let through.
type Turn interface {
	// End hears what came back, once. An error means that the endpoint has refused us, by the gate's own rules: what it said is then no answer,
	// and the next endpoint is asked.
	End(ctx context.Context, s Said) error
}

// Said is what came back of one round trip. The zero value is an answer that is none of a refusal.
type Said struct {
	Status     int           // of HTTP, where it was none of success; else 0
	RetryAfter time.Duration // that came with such a status; 0 where none did
	Code       int           // of a JSON-RPC error; else 0. Nothing that a contract words is passed on: anybody can have one say "quota exceeded"
	Text       string        // of either, one printable line of at most 200 bytes
	// Err is why there is no sensible answer; nil where there is one. Where it is context.Canceled or context.DeadlineExceeded whoever asked has
	// left, which says nothing of the endpoint.
	Err error
}

// A HeldError is a gate's no with the moment from which it may be a yes, on whatever clock the gate has; zero where that is not known.
type HeldError struct {
	Until time.Time
	Err   error
}

func (e *HeldError) Error() string { return e.Err.Error() }

func (e *HeldError) Unwrap() error { return e.Err }

// free is the gate of an endpoint that nobody keeps count of.
type free struct{}

func (free) Begin(context.Context, int) (Turn, error) { return free{}, nil }

func (free) End(context.Context, Said) error { return nil }
