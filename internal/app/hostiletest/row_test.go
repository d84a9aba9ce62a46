package hostiletest

import (
	"net/http"
	"time"

	"market/internal/call"
)

// A cost is what a call cost its caller.
type cost string

const (
	charged    cost = "charged"
	refunded   cost = "refunded in full"
	notCharged cost = "not charged" // nothing moved
)

// A want is how a row's call has to end.
type want struct {
	outcome call.Outcome
	reason  call.Reason
	party   call.Party
	status  int // that the caller sees
	cost    cost
	strike  bool
	rests   time.Duration // about so long; zero: not at all
	breaks  bool          // the answer has begun and the connection to the caller breaks
	body    string        // of a served answer, byte for byte; of a refused one, what service_answer is, as JSON
}

// A row is one thing that a hostile service does.
type row struct {
	name    string // a sentence about the service; a number stands for a case of the public bug reports
	plan    plan
	listing map[string]any // how the endpoint differs from the usual one
	get     bool           // the endpoint is a GET, which HTTP libraries like to repeat
	calls   int            // how many calls are made one after another, each to end as want says; 0: one
	big     bool           // the caller's body is as large as it may be
	headers map[string]any // what the listing has us send along
	guarded bool           // services may be at public addresses alone, as in production
	asked   int            // requests that the service sees in all; 0: one a call; none: nobody
	want    want
}

// briefly returns the row with an endpoint that does not wait long.
func (r row) briefly() row {
	r.listing = soon()
	return r
}

const none = -1

const rest = time.Minute // of a service that failed

const done = `{"done":true}`

func serves(body string) want {
	return want{outcome: call.Served, reason: call.OK, party: call.Service, status: http.StatusOK, cost: charged, body: body}
}

// with returns the want with another status for the caller.
func (w want) with(status int) want { w.status = status; return w }

// resting returns the want with another rest of the service.
func (w want) resting(d time.Duration) want { w.rests = d; return w }

// telling returns the want with what service_answer is.
func (w want) telling(body string) want { w.body = body; return w }

func failsBy(reason call.Reason) want {
	return want{outcome: call.Failed, reason: reason, party: call.Service, status: http.StatusBadGateway, cost: refunded, strike: true, rests: rest}
}

// flagged is a failure that is shown to reviewers and does not count.
func flagged(reason call.Reason) want {
	w := failsBy(reason)
	w.strike = false
	return w
}

var (
	unreachable    = failsBy(call.UpstreamUnreachable)
	timeout        = failsBy(call.UpstreamTimeout).with(http.StatusGatewayTimeout)
	failsInside    = failsBy(call.Upstream5xx)
	redirects      = failsBy(call.UpstreamRedirect)
	badResponse    = failsBy(call.UpstreamBadResponse)
	wantsLogin     = failsBy(call.UpstreamAuth)
	wantsMoney     = failsBy(call.UpstreamPaymentRequired)
	refusesExample = failsBy(call.ListingBroken)
	throttles      = flagged(call.UpstreamThrottled)
	tooLarge       = flagged(call.UpstreamTooLarge)
	ourTrouble     = want{outcome: call.Failed, reason: call.EgressDown, party: call.Platform, status: http.StatusBadGateway, cost: refunded}
	notLive        = want{outcome: call.Refused, reason: call.NotLive, party: call.Service, status: http.StatusServiceUnavailable, cost: notCharged}
	cannotLook     = want{outcome: call.Refused, reason: call.NotReady, party: call.Rail, status: http.StatusServiceUnavailable, cost: notCharged}
	turnsDown      = func(status int) want {
		return want{outcome: call.Refused, reason: call.RejectedByService, party: call.Caller, status: status, cost: refunded}
	}
)

// A group is the rows about one subject.
type group struct {
	title string
	rows  []row
}

// table is every row.
func table() []group {
	return []group{
		{"Names", nameRows()},
		{"Addresses that are not public", addressRows()},
		{"TLS", tlsRows()},
		{"Connections", connectionRows()},
		{"Framing of an answer", framingRows()},
		{"Headers", headerRows()},
		{"Statuses", statusRows()},
		{"Bodies", bodyRows()},
		{"HTTP/2", h2Rows()},
		{"Streams", streamRows()},
		{"Secrets", secretRows()},
		{"The liveness probe", probeRows()},
	}
}
