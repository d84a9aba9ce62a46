//go:build crashpoints

package crash

import (
	"os"
	"syscall"

	"market/internal/call"
)

// Enabled says whether the program can be told to die.
const Enabled = true

// at is where to die. It is read once: a point costs a comparison.
var at = Point(os.Getenv(Variable))

// Before is the moment before a step.
func Before(s Step) { reach(before(s)) }

// After is the moment after a step.
func After(s Step) { reach(after(s)) }

// BeforeMove is the moment before a write that moves a call, or that moves it to one of several states.
func BeforeMove(from call.State, to ...call.State) {
	for _, t := range to {
		Before(move(from, t))
	}
}

// AfterMove is the moment after a write that moved a call.
func AfterMove(from, to call.State) { After(move(from, to)) }

// AfterAnswer is the moment after an answer was written. flush brings it onto the wire first.
func AfterAnswer(flush func()) {
	if at == after(Answer) {
		flush()
	}
	After(Answer)
}

// reach dies as a machine does that loses its power: no deferred function runs, no buffer is written.
func reach(p Point) {
	if p != at {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way; nothing more may happen here
}
