package corpustest

import (
	"net/http"
	"net/netip"
	"time"

	"market/internal/call"
)

// A want is how the last call of a row has to end, and what the row leaves behind.
type want struct {
	outcome call.Outcome // empty: the answer ends no call
	reason  call.Reason
	party   call.Party
	status  int // that the caller gets; 0: its end came when nobody was there to be told
	strikes int // that are open afterwards
	// evidence is how many calls prove them together; 0: one each.
	evidence int
	rests    time.Duration // about so long; zero: not at all
	state    string        // of the listing; empty: it is listed
	paid     int           // transfers on the chain to the treasury, of all calls of the row
	back     int           // and from it
}

// A row is something that happens, and what has to become of it.
type row struct {
	name    string           // a sentence about what happens; a number stands for a case of the public bug reports
	does    http.HandlerFunc // what the service does at first; nil: it works
	listing map[string]any   // how its endpoint differs from the usual one
	service map[string]any   // how the service differs
	// looks is how the name of the service is looked up the nth time since it is listed, from 1; nil: it leads to the service.
	looks func(n int) ([]netip.Addr, error)
	home  string         // the address that the service is at; empty: 127.0.0.1, as all others
	play  func(s *stage) // nil: one payment by somebody from outside
	want  want
}

const rest = time.Minute // of a service that failed

var served = want{outcome: call.Served, reason: call.OK, party: call.Service, status: http.StatusOK, paid: 1}

// fails is a failure of a paid call at the service's door.
func fails(reason call.Reason) want {
	return want{outcome: call.Failed, reason: reason, party: call.Service, status: http.StatusBadGateway, strikes: 1, rests: rest, paid: 1, back: 1}
}

// platformFails is one at ours.
func platformFails(reason call.Reason, status int) want {
	return want{outcome: call.Failed, reason: reason, party: call.Platform, status: status, paid: 1, back: 1}
}

// refused is a call that was turned down before any money moved.
func refused(reason call.Reason, status int) want {
	return want{outcome: call.Refused, reason: reason, party: call.PartyOf(reason), status: status}
}

// turnedDown is a paid call that the service turned down.
func turnedDown(status int) want {
	return want{outcome: call.Refused, reason: call.RejectedByService, party: call.Caller, status: status, paid: 1, back: 1}
}

// told is an answer that ends no call.
func told(reason call.Reason, status int) want {
	return want{reason: reason, party: call.PartyOf(reason), status: status}
}

// resting is a paid call that met a rest which a failure before it began.
var resting = want{outcome: call.CooldownRefused, reason: call.InCooldown, party: call.Platform, status: http.StatusServiceUnavailable,
	strikes: 1, rests: rest, paid: 2, back: 2}

// free returns the want of a trial call.
func (w want) free() want { w.paid, w.back = 0, 0; return w }

// moving returns the want with so many transfers.
func (w want) moving(paid, back int) want { w.paid, w.back = paid, back; return w }

// with returns the want with another status for the caller.
func (w want) with(status int) want { w.status = status; return w }

// striking returns the want with so many open strikes, which so many calls prove.
func (w want) striking(strikes, evidence int) want {
	w.strikes, w.evidence = strikes, evidence
	return w
}

// restingFor returns the want with another rest.
func (w want) restingFor(d time.Duration) want { w.rests = d; return w }

// being returns the want with another state of the listing.
func (w want) being(state string) want { w.state = state; return w }

// unmoved returns the want of a failure that is no evidence.
func (w want) unmoved() want { w.strikes, w.rests = 0, 0; return w }

// A group is the rows about one subject, played in one market.
type group struct {
	title string
	where *place
	rows  []row
}
