package corpustest

import (
	"net/http"
	"strings"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
)

const typeJSON = "Content-Type: application/json"

// promising is a listing whose answers have to be {"done": …}.
var promising = map[string]any{"output_schema": map[string]any{"type": "object", "required": []string{"done"}}}

// exampled is a listing whose example is what callers here ask.
var exampled = map[string]any{"input_example": map[string]any{"n": 1}}

// flagged is a failure that is shown to reviewers and does not count.
func flagged(reason call.Reason) want {
	w := fails(reason)
	w.strikes = 0
	return w
}

// serviceRows are what services do to a paid call.
func serviceRows() []row {
	does := func(name string, work http.HandlerFunc, w want) row { return row{name: name, does: work, want: w} }
	listing := func(r row, listing map[string]any) row { r.listing = listing; return r }
	return []row{
		does("the service answers as its listing promises", apptest.Works, served),
		does("the service answers 201", apptest.Answers(201, `{"done":true}`, typeJSON), served.with(201)),
		does("the service has nothing to say and answers 204", apptest.Answers(204, ""), served.with(204)),
		listing(does("the service answers 404, which its listing sells", apptest.Answers(404, `{"found":false}`, typeJSON), served.with(404)),
			map[string]any{"served_statuses": []int{404}}),
		listing(does("the service keeps its promise of an output schema", apptest.Works, served), promising),
		does("the service fails with 500", apptest.Fails, fails(call.Upstream5xx)),
		does("the service is being repaired and answers 503", apptest.Answers(503, "", "Retry-After: 3600"), fails(call.Upstream5xx)),
		does("the service hangs up before it answers", apptest.HangsUp(""), fails(call.UpstreamUnreachable)),
		{name: "the name of the service is gone when it is asked", looks: leads(here, nil, errNoSuchName), want: fails(call.UpstreamUnreachable)},
		listing(does("the service takes longer than its listing allows", apptest.Sleeps, fails(call.UpstreamTimeout).with(http.StatusGatewayTimeout)),
			map[string]any{"timeout_ms": 300}),
		does("the service sends us elsewhere (B100)", apptest.Answers(302, "", "Location: http://127.0.0.1:9/stolen"), fails(call.UpstreamRedirect)),
		does("the service sends us back to itself", apptest.Answers(307, "", "Location: /work"), fails(call.UpstreamRedirect)),
		does("the service stops in the middle of its answer (B93)", apptest.HangsUp("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"done\":"),
			fails(call.UpstreamBadResponse)),
		listing(does("the service breaks its promise of an output schema", apptest.Answers(200, `{"other":1}`, typeJSON), fails(call.UpstreamBadResponse)), promising),
		listing(does("the service answers HTML where it promised JSON", apptest.Answers(200, "<html>"), fails(call.UpstreamBadResponse)), promising),
		does("the service says that nothing has changed", apptest.Answers(304, ""), fails(call.UpstreamBadResponse)),
		does("the service asks us for credentials", apptest.Answers(401, "", `WWW-Authenticate: Basic realm="x"`), fails(call.UpstreamAuth)),
		does("the service answers as a proxy that wants a password", apptest.Answers(407, ""), fails(call.UpstreamAuth)),
		does("the service asks for a payment of its own (B109)", apptest.Answers(402, "", "PAYMENT-REQUIRED: e30="), fails(call.UpstreamPaymentRequired)),
		listing(does("the service refuses the example of its own listing", apptest.Answers(422, `{"why":"no"}`, typeJSON), fails(call.ListingBroken)), exampled),
		listing(does("the service does not take the media type of its own example", apptest.Answers(415, ""), turnedDown(415)), exampled),
		does("the service is asked too often", apptest.Answers(429, ""), flagged(call.UpstreamThrottled)),
		does("the service is asked too often and wants five minutes", apptest.Answers(429, "", "Retry-After: 300"),
			flagged(call.UpstreamThrottled).restingFor(5*time.Minute)),
		does("the service is asked too often and wants a year", apptest.Answers(429, "", "Retry-After: 31536000"),
			flagged(call.UpstreamThrottled).restingFor(10*time.Minute)),
		listing(does("the service answers more than its listing allows", apptest.Answers(200, strings.Repeat("x", 101)), flagged(call.UpstreamTooLarge)),
			map[string]any{"max_response_bytes": 100}),
		does("the service finds the input bad", apptest.Answers(400, "no"), turnedDown(400)),
		does("the service forbids the call, as firewalls do", apptest.Answers(403, ""), turnedDown(403)),
		does("the service finds nothing, which its listing does not sell", apptest.Answers(404, ""), turnedDown(404)),
		does("the service finds the input too big", apptest.Answers(413, ""), turnedDown(413)),
		does("the service cannot process the input", apptest.Answers(422, `{"why":"no"}`, typeJSON), turnedDown(422)),
	}
}

// trialRows are what services do to a call that nobody pays for: it counts as much, and there is no money in it.
func trialRows() []row {
	tries := func(name string, work http.HandlerFunc, w want) row {
		return row{name: name, does: work, play: func(s *stage) { s.try() }, want: w.free()}
	}
	rows := []row{
		tries("a trial call is served", apptest.Works, served),
		tries("a trial call fails with 500", apptest.Fails, fails(call.Upstream5xx)),
		tries("the service hangs up on a trial call", apptest.HangsUp(""), fails(call.UpstreamUnreachable)),
		tries("the service asks a trial call for credentials", apptest.Answers(401, ""), fails(call.UpstreamAuth)),
		tries("the service is asked too often, by a trial call", apptest.Answers(429, ""), flagged(call.UpstreamThrottled)),
		tries("the service turns a trial call down", apptest.Answers(422, ""), turnedDown(422)),
		tries("the service refuses the example of its own listing in a trial call", apptest.Answers(422, ""), fails(call.ListingBroken)),
	}
	rows[len(rows)-1].listing = exampled
	return rows
}
