package readiness

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Keeper keeps what is known of each network.
type Keeper struct {
	checks map[string]Check
	opts   Options
	mu     sync.Mutex
	last   map[string]interimVerdict
}

type interimVerdict struct {
	at  time.Time
	err error
}

// New returns a keeper of these networks.
func New(checks map[string]Check, opts Options) *Keeper {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Keeper{checks: checks, opts: opts, last: map[string]interimVerdict{}}
}

func (k *Keeper) interim(ctx context.Context, network string) error {
	check, known := k.checks[network]
	if !known {
		return &Closed{Network: network, Cause: CauseUnknown, Why: fmt.Errorf("network %s is not checked", network)}
	}
	for _, stop := range []func(string) error{k.opts.Stopped, k.opts.Limited} {
		if stop == nil {
			continue
		}
		if err := stop(network); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, seen := k.last[network]; seen && k.opts.Now().Sub(v.at) < k.opts.Fixed {
		return v.err
	}
	limited, cancel := context.WithTimeout(ctx, k.opts.Limit)
	defer cancel()
	err := check(limited).Err()
	if was := k.last[network].err; (was == nil) != (err == nil) && k.opts.Changed != nil {
		k.opts.Changed(network, err)
	}
	k.last[network] = interimVerdict{k.opts.Now(), err}
	return err
}
