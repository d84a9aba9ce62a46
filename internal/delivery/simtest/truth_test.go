package simtest

import (
	"net/netip"
	"time"

	"market/internal/call"
)

// A doing is whose doing the end of a call was: the truth, which the market does not know.
type doing int

const (
	_         doing = iota
	delivered       // the service kept its promise
	ownFault        // the service did not, to a valid call that reached it
	flagged         // the service throttled, or answered with too much: shown to reviewers, and no incident
	callers         // the caller's
	ours            // of the platform
	rails           // of the facilitator or the chain
	rested          // it met a cooldown, and nobody was asked

	doingEnd // keep last
)

func (d doing) String() string {
	return [...]string{"invalid", "delivered", "fault of the service", "throttled or too large", "fault of the caller", "fault of ours",
		"fault of the rail", "met a cooldown"}[d]
}

// A caller is who calls.
type caller int

const (
	_         caller = iota
	ordinary         // one of many addresses
	forwarded        // through a proxy that is not configured
	poisoner         // sends valid input that some services cannot stand
	scanner          // ours
	provider         // of the service itself
)

// origin is where the market sees the caller come from. That is the work of package caller, and not in question here.
func (c caller) origin() call.Origin {
	switch c {
	case forwarded:
		return call.Unattributed
	case scanner:
		return call.Own
	case provider:
		return call.Provider
	case ordinary, poisoner:
		return call.External
	}
	panic("simtest: nobody calls")
}

// outside says whether the caller is a stranger to the market and to the service.
func (c caller) outside() bool { return c == ordinary || c == forwarded || c == poisoner }

// An end is how one call ended: what a replica saw, and beside it the truth. Times count from the beginning of the market.
type end struct {
	n       int // of the call, from 1
	service int
	replica int
	caller  caller
	source  netip.Addr
	asked   time.Duration // notAsked: the service was not
	at      time.Duration // when it is recorded
	reason  call.Reason
	row     call.Row      // of the reason: its outcome, and the party before anything is excused
	wait    time.Duration // what a throttling service asks for
	truth   doing
	outage  int // of ours that ended it, from 1; 0: none
}

const notAsked = time.Duration(-1)

// rowOf is what a reason says of the outcome and the party.
var rowOf = func() map[call.Reason]call.Row {
	rows := map[call.Reason]call.Row{}
	for _, row := range call.Rows() {
		rows[row.Reason] = row
	}
	return rows
}()

func (e end) wasAsked() bool { return e.asked != notAsked }
