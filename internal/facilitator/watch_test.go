package facilitator

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// A reader has receipts for some transactions and counts its round trips.
type reader struct {
	mu     sync.Mutex
	trips  int
	most   int // transactions in one
	mined  map[common.Hash]*chain.Receipt
	broken int // round trips that fail first
}

func (r *reader) read(_ context.Context, hashes []common.Hash) ([]*chain.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trips++
	r.most = max(r.most, len(hashes))
	if r.trips <= r.broken {
		return nil, errors.New("down")
	}
	out := make([]*chain.Receipt, len(hashes))
	for i, h := range hashes {
		out[i] = r.mined[h]
	}
	return out, nil
}

func TestWatch_ManyWaitersShareRoundTrips(t *testing.T) {
	t.Parallel()
	const waiters = 120
	r := &reader{mined: map[common.Hash]*chain.Receipt{}, broken: 2}
	w := newWatch(r.read)
	all := make([]*waiter, waiters)
	for i := range all {
		hash := common.Hash{byte(i), 1}
		r.mu.Lock()
		r.mined[hash] = &chain.Receipt{Transaction: hash}
		r.mu.Unlock()
		all[i] = w.add(hash)
	}
	for _, wt := range all {
		select {
		case got := <-wt.seen:
			if got.Transaction != wt.hash {
				t.Errorf("waiter of %s got %s", wt.hash, got.Transaction)
			}
		case <-time.After(testTime):
			t.Fatalf("no receipt for %s", wt.hash)
		}
		w.remove(wt)
	}
	r.mu.Lock()
	trips, most := r.trips, r.most
	r.mu.Unlock()
	if trips > waiters/2 || most > chain.ReceiptsMax {
		t.Errorf("%d round trips of up to %d transactions for %d waiters", trips, most, waiters)
	}
	eventually(t, "the loop ends with its last waiter", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.running && len(w.waiting) == 0
	})
	// And it starts again.
	again := w.add(all[0].hash)
	defer w.remove(again)
	select {
	case <-again.seen:
	case <-time.After(testTime):
		t.Fatal("no receipt after the loop had ended")
	}
}

func TestWatch_LooksLessAndLessOften(t *testing.T) {
	t.Parallel()
	w := newWatch(nil)
	wt := &waiter{}
	wt.gap = 1
	w.waiting[wt] = struct{}{}
	var looks []int
	for tick := range 400 {
		if due, more := w.due(); !more {
			t.Fatal("the loop ended under its waiter")
		} else if len(due) == 1 {
			looks = append(looks, tick)
		}
	}
	if looks[0] != 0 || looks[1] != 1 {
		t.Errorf("first looks at ticks %v, want 0 and 1", looks[:2])
	}
	last := 0
	for i := 1; i < len(looks); i++ {
		gap := looks[i] - looks[i-1]
		if gap < last || gap > gapMax {
			t.Errorf("gap %d after gap %d, want it to grow up to %d", gap, last, gapMax)
		}
		last = gap
	}
	if last != gapMax {
		t.Errorf("last gap = %d, want %d", last, gapMax)
	}
}

func TestWatch_AWaiterGetsTheNewestReceipt(t *testing.T) {
	t.Parallel()
	wt := &waiter{seen: make(chan *chain.Receipt, 1)}
	for depth := range 3 {
		wt.put(&chain.Receipt{Depth: depth})
	}
	if got := <-wt.seen; got.Depth != 2 {
		t.Errorf("depth = %d, want that of the newest", got.Depth)
	}
}
