//go:build !crashpoints

package crash

import "market/internal/call"

// Enabled says whether the program can be told to die.
const Enabled = false

// Before is the moment before a step.
func Before(Step) {}

// After is the moment after a step.
func After(Step) {}

// BeforeMove is the moment before a write that moves a call, or that moves it to one of several states.
func BeforeMove(_ call.State, _ ...call.State) {}

// AfterMove is the moment after a write that moved a call.
func AfterMove(_, _ call.State) {}

// AfterAnswer is the moment after an answer was written. flush brings it onto the wire first.
func AfterAnswer(_ func()) {}
