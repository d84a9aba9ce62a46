package crashtest

import (
	"fmt"

	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/crash"
)

// An end is how a call ended: in the books, on the chain and at the service.
type end struct {
	state  call.State // empty: nothing is known of the call
	reason string     // of its delivery; empty: it has none
	refund string     // its state; empty: none is owed
	in     int        // transfers from the payer to the treasury
	out    int        // and back
	asked  int        // requests to the service
}

func (e end) String() string {
	if e.state == "" {
		return "nothing"
	}
	name := string(e.state)
	if e.reason != "" {
		name += "·" + e.reason
	}
	return fmt.Sprintf("%s %d/%d/%d", name, e.in, e.out, e.asked)
}

// An outcome is an end, and what it takes to come to it.
type outcome struct {
	end
	lapses bool // the payment's time has to pass on the chain
}

const confirmed = "confirmed"

var (
	nothing     = outcome{}
	released    = outcome{end: end{state: call.StateReleased}}
	served      = outcome{end: end{call.StateServed, "ok", "", 1, 0, 1}}
	failed      = outcome{end: end{call.StateFailed, "upstream_5xx", confirmed, 1, 1, 1}}
	turnedDown  = outcome{end: end{call.StateRefused, "rejected_by_service", confirmed, 1, 1, 1}}
	interrupted = outcome{end: end{call.StateFailed, "interrupted", confirmed, 1, 1, 0}} // before the service was asked
	cutShort    = outcome{end: end{call.StateFailed, "interrupted", confirmed, 1, 1, 1}} // while or after it was
	rested      = outcome{end: end{call.StateCooldownRefused, "in_cooldown", confirmed, 1, 1, 0}}
	moved       = outcome{end: end{call.StateFailed, "late_settlement", confirmed, 1, 1, 0}}
	lapsed      = outcome{end: end{call.StateRefused, "settle_failed", "", 0, 0, 0}, lapses: true}
	rejected    = outcome{end: end{call.StateRefused, "settle_rejected", "", 0, 0, 0}, lapses: true}
	used        = outcome{end: end{call.StateRefused, "settle_rejected", "", 0, 0, 0}}
)

// A row is what becomes of a call whose server died at one point.
type row struct {
	scene scene
	retry pair // the caller sends the same payment again
	gone  pair // the caller is gone
	late  bool // the caller comes only after the call has ended
}

// A pair is the end where the service serves, and where it fails.
type pair struct{ serves, fails outcome }

func both(o outcome) pair { return pair{o, o} }

// whatever is a row whose end no caller and no service changes any more.
func whatever(s scene, o outcome) row { return row{scene: s, retry: both(o), gone: both(o)} }

// open is a row of a call that a retry still brings to the service, and that ends otherwise where nobody comes.
func open(s scene, left outcome) row {
	return row{scene: s, retry: pair{served, failed}, gone: both(left)}
}

var (
	plain = walk(nil)
	good  = walk(apptest.Works)
	bad   = walk(apptest.Fails)
	picky = walk(refuses)
)

// table says for every point how the call ends: exactly so.
func table() map[crash.Point]row {
	asItDoes := row{scene: plain, retry: pair{served, failed}, gone: pair{served, failed}}
	return map[crash.Point]row{
		"before:claim": open(plain, nothing),
		"after:claim":  open(plain, lapsed),
		// From here on the signed bytes are stored, and a server that starts sends them.
		"before:send": open(plain, interrupted),
		"after:send":  open(plain, interrupted),

		"before:settling->asked": open(plain, interrupted),
		"after:settling->asked":  whatever(plain, interrupted),

		"before:settling->settled": {scene: resting, retry: both(rested), gone: both(interrupted)},
		"after:settling->settled":  {scene: resting, retry: both(rested), gone: both(interrupted)},

		"before:settling->released": open(paused, lapsed),
		"after:settling->released":  open(paused, released),
		"before:released->settling": open(again, released),
		"after:released->settling":  open(again, lapsed),

		"before:settling->unknown": open(front, interrupted),
		"after:settling->unknown":  open(front, interrupted),
		"before:unknown->asked":    open(frontRetried, interrupted),
		"after:unknown->asked":     whatever(frontRetried, interrupted),
		"before:unknown->settled":  open(frontFound, interrupted),
		"after:unknown->settled":   open(frontFound, interrupted),

		"before:settling->rejected": open(refusedByToken, lapsed),
		"after:settling->rejected":  whatever(refusedByToken, rejected),
		"before:unknown->rejected":  whatever(spent, used),
		"after:unknown->rejected":   whatever(spent, used),
		"before:rejected->settled":  whatever(late, moved),
		"after:rejected->settled":   whatever(late, moved),
		"before:rejected->refused":  whatever(over, rejected),
		"after:rejected->refused":   whatever(over, rejected),

		"before:settling->expired": whatever(stuck, lapsed),
		"after:settling->expired":  whatever(stuck, lapsed),
		"before:unknown->expired":  whatever(lying, lapsed),
		"after:unknown->expired":   whatever(lying, lapsed),
		"before:expired->refused":  whatever(lying, lapsed),
		"after:expired->refused":   whatever(lying, lapsed),

		"before:settled->asked":  open(foundRetried, interrupted),
		"after:settled->asked":   whatever(foundRetried, interrupted),
		"before:settled->failed": {scene: foundLeft, retry: both(interrupted), gone: both(interrupted), late: true},
		"after:settled->failed":  whatever(foundLeft, interrupted),

		"before:settled->cooldown_refused": {scene: resting, retry: both(rested), gone: both(interrupted)},
		"after:settled->cooldown_refused":  whatever(resting, rested),

		"before:ask": whatever(plain, interrupted),
		"after:ask":  whatever(plain, cutShort),

		"before:asked->served":  whatever(good, cutShort),
		"after:asked->served":   whatever(good, served),
		"before:asked->refused": whatever(picky, cutShort),
		"after:asked->refused":  whatever(picky, turnedDown),
		"before:asked->failed":  whatever(bad, cutShort),
		"after:asked->failed":   whatever(bad, failed),

		"before:answer": asItDoes,
		"after:answer":  asItDoes,

		// B153: the job of a server that died counts as running, and the refund goes on all the same.
		"before:refund_sign":    whatever(bad, failed),
		"after:refund_sign":     whatever(bad, failed),
		"before:refund_send":    whatever(bad, failed),
		"after:refund_send":     whatever(bad, failed),
		"before:refund_confirm": whatever(bad, failed),
		"after:refund_confirm":  whatever(bad, failed),
	}
}
