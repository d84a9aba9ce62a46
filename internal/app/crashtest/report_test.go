package crashtest

import (
	"fmt"
	"strings"
	"sync"
)

// A report is what the matrix came to.
type report struct {
	mu   sync.Mutex
	done []string // by case: empty while nobody ran it
}

const (
	markPassed = "ok"
	markFailed = "FAILED"
)

func newReport(cases int) *report { return &report{done: make([]string, cases)} }

func (r *report) ended(i int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done[i] = markFailed
	if ok {
		r.done[i] = markPassed
	}
}

func (r *report) broke(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done[i] == markFailed
}

// text is the matrix: a line for each point, with all four ends where they differ.
func (r *report) text(all []kase) string {
	var (
		b              strings.Builder
		passed, failed int
	)
	for i, k := range all {
		if r.done[i] == "" {
			continue
		}
		if r.done[i] == markPassed {
			passed++
		} else {
			failed++
		}
		fmt.Fprintf(&b, "%-7s %-34s %-13s %s\n", r.done[i], k.point, k.column(), k.want().end)
	}
	fmt.Fprintf(&b, "%d passed, %d failed\n", passed, failed)
	return b.String()
}
