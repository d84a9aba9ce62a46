package hostiletest

import (
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// heapMax is what the heap of this whole program may grow by while the rows are played. Twelve of them run at once, and one holds at most the
// answer of 1 MiB that a listing allows, read into a buffer that doubles; where it is held against a schema also what is unpacked of it, at most
// 8 MiB in a buffer that doubles, and its JSON as values; and the same of ours and of the hosts, which live here too. The development chain, which
// keeps its blocks in memory, and what waits for the collector come on top. Nothing that a service sends without end fits below it.
const heapMax = 192 << 20

// A memory is the highest that the heap came to.
type memory struct {
	before, most uint64
	stop         chan struct{}
	done         sync.WaitGroup
}

// watchMemory looks at the heap until judge.
func watchMemory(t testing.TB) *memory {
	t.Helper()
	bomb() // made here, so that nobody takes it for the market's
	manyMembers()
	runtime.GC()
	m := &memory{before: heap(), stop: make(chan struct{})}
	m.done.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			m.most = max(m.most, heap())
			select {
			case <-m.stop:
				return
			case <-tick.C:
			}
		}
	})
	return m
}

func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// judge ends the watch.
func (m *memory) judge(t testing.TB) {
	t.Helper()
	close(m.stop)
	m.done.Wait()
	if grew := m.grew(); grew > heapMax {
		t.Errorf("%s", m)
	}
}

func (m *memory) grew() uint64 { return m.most - min(m.most, m.before) }

func (m *memory) String() string {
	return fmt.Sprintf("The heap grew by %d MiB at most; %d MiB are allowed.", m.grew()>>20, uint64(heapMax)>>20)
}
