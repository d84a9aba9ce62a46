package source

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Hooks are what others do about a source. Each runs in the transaction in which the thing becomes so, in a part of its own: where it fails, what was
// learnt of the source is kept all the same, OnError hears of it, and Out and Back are called again at the next occasion. Any may be nil.
type Hooks struct {
	// Out tells that a source is newly out, or that our guard is newly reached; and again with each test that finds it still out, for a notice that was
	// given up. Who was told needs no second one until Back was called.
	Out func(ctx context.Context, tx pgx.Tx, s Source, o Out) error
	// Back tells that it has worked again and has not refused for a while; of our guard, that units are let through again.
	Back func(ctx context.Context, tx pgx.Tx, s Source, was Why) error
	// Resume tells that the source can be asked again: what waits for it is due now.
	Resume func(ctx context.Context, tx pgx.Tx, s Source) error
	// Waiting counts the units that work which is owed already will want. It is asked only when less than a tenth of a day's cap is left.
	Waiting func(ctx context.Context, source string) (Waiting, error)
	// OnError hears what went wrong beside the work.
	OnError func(error)
	// Observer counts.
	Observer Observer
}

// An Observer counts reservations: those that were granted with no Why, the others with theirs.
type Observer interface {
	Reserved(source string, c Class, why Why)
}

// Out is why a source is out, for people. Times are market time.
type Out struct {
	Why   Why // Guarded, Exhausted or Denied
	Since time.Time
	Until time.Time // when we try next
	Said  string    // what the refusal was known by, such as "HTTP 402"; empty for Guarded

	// Of Guarded:
	Used, Cap, Busiest int64 // units today, the most for today, and those of the busiest day that the cap follows
}
