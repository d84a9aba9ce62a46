package windowtest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"market/internal/app/apptest"
)

const (
	doorRequests = 200 // of each kind, with the facilitator answering and hanging
	doorTries    = 20  // for one of them, where the facilitator's question ended in the middle of it
)

// doors asks a replica how it stands and what a call costs, with the facilitator answering and hanging. Of each request while it hangs it is shown that it
// did not wait: the same question of the replica was with the facilitator before the request and after its answer. How long they took is told, and judged
// by nobody.
func doors(t *testing.T, f *fleet) string {
	m := f.alive()[0]
	timed := func(method, url string) func() time.Duration {
		return func() time.Duration {
			began := time.Now()
			m.do(t.Context(), method, url, nil)
			return time.Since(began)
		}
	}
	requests := map[string]func() time.Duration{"/readyz": timed(http.MethodGet, m.Ops+"/readyz"), "unpaid": timed(http.MethodPost, m.URL+listed)}
	calm := map[string]time.Duration{}
	for kind, request := range requests {
		calm[kind] = median(request)
	}
	f.authority.becomes(hangs)
	saw := ""
	for _, kind := range slices.Sorted(maps.Keys(requests)) {
		before := f.authority.sight().asked
		took := median(func() time.Duration { return f.duringAQuestion(t, m, requests[kind]) })
		if asked := f.authority.sight().asked - before; asked >= doorRequests/2 {
			t.Errorf("%d requests of %s, and the facilitator was asked %d times meanwhile", doorRequests, kind, asked)
		}
		saw += fmt.Sprintf("%s: median %s with answers, %s without (ratio %.2f); ", kind, calm[kind].Round(10*time.Microsecond), took.Round(10*time.Microsecond),
			float64(took)/float64(calm[kind]))
	}
	return saw + fmt.Sprintf("each of %d requests was answered while one and the same question waited", 2*doorRequests)
}

// duringAQuestion makes a request while the facilitator keeps a question of the replica, and again where that ended meanwhile; it returns how long the
// request took.
func (f *fleet) duringAQuestion(t *testing.T, m *member, request func() time.Duration) (took time.Duration) {
	t.Helper()
	for range doorTries {
		var before map[int]bool
		apptest.Eventually(t, "the facilitator keeps a question of the replica", func() bool {
			before = f.authority.holds(m.name)
			return len(before) > 0
		})
		took = request()
		for id := range f.authority.holds(m.name) {
			if before[id] {
				return took
			}
		}
	}
	t.Errorf("%d requests ended only when a question to the facilitator did", doorTries)
	return took
}

// median is how long the middle one of some requests takes.
func median(request func() time.Duration) time.Duration {
	took := make([]time.Duration, doorRequests)
	for i := range took {
		took[i] = request()
	}
	slices.Sort(took)
	return took[len(took)/2]
}
