package facilitator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

const (
	tick   = 25 * time.Millisecond
	gapMax = 20 // ticks between two looks at one transaction: half a second
)

// A watch reads the receipts of all transactions that somebody waits for, many in one round trip. Its loop runs while there is
// somebody. Each transaction is looked at every tick in the beginning, and less and less often.
type watch struct {
	read func(context.Context, []common.Hash) ([]*chain.Receipt, error)

	mu      sync.Mutex
	waiting map[*waiter]struct{}
	running bool
}

// A waiter gets the newest receipt of its transaction, whenever one was read.
type waiter struct {
	hash common.Hash
	seen chan *chain.Receipt // of capacity 1
	gap  int                 // ticks between looks
	left int                 // ticks until the next
}

func newWatch(read func(context.Context, []common.Hash) ([]*chain.Receipt, error)) *watch {
	return &watch{read: read, waiting: map[*waiter]struct{}{}}
}

func (w *watch) add(hash common.Hash) *waiter {
	wt := &waiter{hash: hash, seen: make(chan *chain.Receipt, 1), gap: 1}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[wt] = struct{}{}
	if !w.running {
		w.running = true
		go w.run()
	}
	return wt
}

func (w *watch) remove(wt *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, wt)
}

func (w *watch) run() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for range ticker.C {
		due, more := w.due()
		if !more {
			return
		}
		for part := range slices.Chunk(due, chain.ReceiptsMax) {
			w.look(part)
		}
	}
}

// due counts a tick and returns whose turn it is; false means that nobody waits, and the loop has ended.
func (w *watch) due() ([]*waiter, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.running = false
		return nil, false
	}
	var due []*waiter
	for wt := range w.waiting {
		if wt.left--; wt.left > 0 {
			continue
		}
		due = append(due, wt)
		wt.left = wt.gap
		wt.gap = min(gapMax, wt.gap+wt.gap/4+1)
	}
	return due, true
}

// look reads one part. A node in trouble is asked again at the next turn: the waiters have deadlines of their own.
func (w *watch) look(part []*waiter) {
	hashes := make([]common.Hash, len(part))
	for i, wt := range part {
		hashes[i] = wt.hash
	}
	receipts, err := w.read(context.Background(), hashes)
	if err != nil {
		return
	}
	for i, wt := range part {
		if receipts[i] != nil {
			wt.put(receipts[i])
		}
	}
}

// put replaces a receipt that was not taken yet. Only the loop calls it.
func (wt *waiter) put(r *chain.Receipt) {
	select {
	case <-wt.seen:
	default:
	}
	wt.seen <- r
}
