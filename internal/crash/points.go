package crash

import (
	"slices"

	"market/internal/call"
)

// A Step is something that the program does once for a call and that dying may cut short.
type Step string

// The steps beside the moves of a call's state.
const (
	Claim         Step = "claim"          // the first commit: the payment is taken for the call
	Send          Step = "send"           // the payment's transaction is shown to the chain
	Ask           Step = "ask"            // the service is asked
	Answer        Step = "answer"         // the caller gets its answer
	RefundSign    Step = "refund_sign"    // the refund's authorization is signed and written
	RefundSend    Step = "refund_send"    // the refund's transaction is shown to the chain
	RefundConfirm Step = "refund_confirm" // the refund is written as confirmed
)

// Variable is the environment variable that names the point to die at.
const Variable = "MARKET_CRASH_AT"

// A Point is one side of a step, "before:claim" or "after:settling->asked" for example.
type Point string

// Points returns all of them, in the order of a call's life as far as it has one.
func Points() []Point {
	steps := []Step{Claim, Send}
	for _, m := range call.Moves() {
		steps = append(steps, move(m.From, m.To))
	}
	steps = append(steps, Ask, Answer, RefundSign, RefundSend, RefundConfirm)
	points := make([]Point, 0, 2*len(steps))
	for _, s := range steps {
		points = append(points, before(s), after(s))
	}
	return points
}

// Known says whether there is such a point.
func Known(name string) bool { return slices.Contains(Points(), Point(name)) }

func move(from, to call.State) Step { return Step(string(from) + "->" + string(to)) }
func before(s Step) Point           { return Point("before:" + string(s)) }
func after(s Step) Point            { return Point("after:" + string(s)) }
