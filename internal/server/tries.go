package server

import (
	"net/netip"
	"sync"
	"time"
)

const (
	triesMax    = 10               // of one address prefix within triesWindow
	triesWindow = 15 * time.Minute // from the first of them
	triesKept   = 10_000           // prefixes that are remembered
)

// tries counts how often somebody at an address prefix tried to sign in, so that nobody guesses on. Each process counts for itself.
type tries struct {
	mu sync.Mutex
	by map[netip.Prefix]tried
}

type tried struct {
	n     int
	until time.Time
}

// take counts one more try, before it is known whether it is right, so that many at once are no way around it. It returns how long nobody from the
// prefix may try; zero where this one may. Somebody with more prefixes than are remembered makes us forget: no token can be guessed by that.
func (t *tries) take(from netip.Prefix, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, known := t.by[from]
	if t.by == nil || !known && len(t.by) >= triesKept {
		t.by = map[netip.Prefix]tried{}
	}
	if !now.Before(at.until) {
		at = tried{until: now.Add(triesWindow)}
	}
	if at.n >= triesMax {
		return at.until.Sub(now)
	}
	at.n++
	t.by[from] = at
	return 0
}

// right forgets what was tried from a prefix: somebody there knows the token.
func (t *tries) right(from netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by, from)
}
