package apptest

import (
	"fmt"
	"sync"
)

// An End is what one row of a table came to; the zero value is that of a row that nobody ran.
type End int

const (
	Unrun End = iota
	AsTold
	Otherwise
)

// A Tally is what the rows of a table came to, told by tests that run side by side.
type Tally struct {
	mu   sync.Mutex
	ends []End
}

// NewTally returns the tally of so many rows.
func NewTally(rows int) *Tally { return &Tally{ends: make([]End, rows)} }

// Ended says how a row ended. One that failed once has failed.
func (t *Tally) Ended(row int, well bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !well:
		t.ends[row] = Otherwise
	case t.ends[row] == Unrun:
		t.ends[row] = AsTold
	}
}

// At is what a row came to.
func (t *Tally) At(row int) End {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ends[row]
}

// Line is the last line of every table. failed says that something failed which is no row: it counts as one where no row did.
func (t *Tally) Line(failed bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var count [Otherwise + 1]int
	for _, e := range t.ends {
		count[e]++
	}
	if failed && count[Otherwise] == 0 {
		count[Otherwise]++
	}
	return fmt.Sprintf("%d passed, %d failed\n", count[AsTold], count[Otherwise])
}
