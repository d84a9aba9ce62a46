package chain

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A headCounter counts how often the head is asked for, and holds each answer until it is let go.
type headCounter struct {
	asked   atomic.Int64
	arrived chan struct{}
	release chan struct{}
}

func (h *headCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), "eth_getBlockByNumber") {
		h.asked.Add(1)
		h.arrived <- struct{}{}
		<-h.release
	}
	fakeNode{
		"eth_chainId":          `"0x14a34"`,
		"eth_getBlockByNumber": `{"number":"0x7","timestamp":"0x64","hash":"0x0000000000000000000000000000000000000000000000000000000000000001"}`,
	}.ServeHTTP(w, withBody(r, body))
}

func TestNode_Head_IsOneRoundTripForAllWhoWait(t *testing.T) {
	t.Parallel()
	h := &headCounter{arrived: make(chan struct{}, 100), release: make(chan struct{})}
	n := dialHandler(t, h)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got, err := n.Head(t.Context()); err != nil || got.Number != 7 || got.Time != 100 {
				t.Errorf("Head = %+v, %v", got, err)
			}
		})
	}
	<-h.arrived
	close(h.release)
	wg.Wait()
	// Whoever came after the answer took it from the cache.
	if got := h.asked.Load(); got != 1 {
		t.Errorf("the node was asked %d times, want 1", got)
	}
}

func TestNode_Head_IsUsedForOneSecond(t *testing.T) {
	t.Parallel()
	h := &headCounter{arrived: make(chan struct{}, 100), release: make(chan struct{})}
	close(h.release)
	n := dialHandler(t, h)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var now atomic.Int64 // nanoseconds since start
	n.now = func() time.Time { return start.Add(time.Duration(now.Load())) }
	for _, step := range []struct {
		at    time.Duration
		asked int64
	}{
		{0, 1},
		{time.Second - 1, 1},
		{time.Second, 1},
		{time.Second + 1, 2},
		{2*time.Second + 1, 2},
		{2*time.Second + 2, 3},
	} {
		now.Store(int64(step.at))
		if _, err := n.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := h.asked.Load(); got != step.asked {
			t.Errorf("%v after the first: asked %d times, want %d", step.at, got, step.asked)
		}
	}
	if _, err := n.FreshHead(t.Context()); err != nil || h.asked.Load() != 4 {
		t.Errorf("FreshHead: %v, asked %d times, want 4", err, h.asked.Load())
	}
}
