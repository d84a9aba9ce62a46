package server

import (
	"cmp"
	"net/netip"
	"sync"
	"time"
)

const (
	triesMax    = 10               // of one address prefix within triesWindow, where a server says no other number
	triesWindow = 15 * time.Minute // from the first of them
	triesKept   = 10_000           // prefixes, or accounts, that are remembered
)

// What strangers may do in triesWindow from one address prefix: nobody guesses a token of 32 random bytes, so this keeps the load of it small.
const (
	challengesMax = 60
	signInsMax    = 30
	badTokensMax  = 100
)

// tries counts how often somebody at an address prefix tried something, such as to sign in, so that nobody goes on for ever. Each process counts for itself.
type tries = triesOf[netip.Prefix]

// triesOf are tries of whoever K tells apart.
type triesOf[K comparable] struct {
	max    int           // 0: triesMax
	window time.Duration // 0: triesWindow

	mu sync.Mutex
	by map[K]tried
}

type tried struct {
	n     int
	until time.Time
}

// take counts one more try, before it is known whether it is right, so that many at once are no way around it. It returns how long nobody from the
// prefix may try; zero where this one may. Somebody with more prefixes than are remembered makes us forget: no token can be guessed by that.
func (t *triesOf[K]) take(from K, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, known := t.by[from]
	if t.by == nil || !known && len(t.by) >= triesKept {
		t.by = map[K]tried{}
	}
	if !now.Before(at.until) {
		at = tried{until: now.Add(cmp.Or(t.window, triesWindow))}
	}
	if at.n >= t.most() {
		return at.until.Sub(now)
	}
	at.n++
	t.by[from] = at
	return 0
}

func (t *triesOf[K]) most() int {
	return cmp.Or(t.max, triesMax)
}

// full returns how long nobody from the prefix may try, as take does, and counts nothing.
func (t *triesOf[K]) full(from K, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.by[from]; at.n >= t.most() && now.Before(at.until) {
		return at.until.Sub(now)
	}
	return 0
}

// right forgets what was tried from a prefix: somebody there knows the token.
func (t *triesOf[K]) right(from K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by, from)
}

// known remembers tokens that were good a while ago, by their digests. Where a network has sent too many wrong ones, whoever has one of these is asked
// about all the same: one that guesses does not shut its neighbours out.
type known struct {
	mu    sync.Mutex
	until map[[32]byte]time.Time
}

// note remembers a token that is good now. Beyond what is kept all are forgotten, and noted again when they are used.
func (k *known) note(digest [32]byte, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.until == nil || len(k.until) >= triesKept {
		k.until = map[[32]byte]time.Time{}
	}
	k.until[digest] = now.Add(4 * triesWindow)
}

func (k *known) has(digest [32]byte, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return now.Before(k.until[digest])
}
