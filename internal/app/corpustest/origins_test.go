package corpustest

import (
	"market/internal/app/apptest"
	"market/internal/call"
)

// originRows are failures that callers of every kind meet. Who a caller is, our own side of the connection says.
func originRows() []row {
	meets := func(name string, who caller, w want) row {
		return row{name: name, does: apptest.Fails, play: func(s *stage) { s.from(who).pay() }, want: w}
	}
	return []row{
		meets("our own scanner meets a failure", ours, fails(call.Upstream5xx).unmoved()),
		{name: "our own scanner is throttled", does: apptest.Answers(429, "", "Retry-After: 300"), want: flagged(call.UpstreamThrottled).unmoved(),
			play: func(s *stage) { s.from(ours).pay() }},
		{name: "our own scanner meets a failure in a trial call", does: apptest.Fails, want: fails(call.Upstream5xx).unmoved().free(),
			play: func(s *stage) { s.from(ours).try() }},
		{name: "our own scanner sends the example of a listing that refuses it", does: apptest.Answers(422, ""), listing: exampled, want: turnedDown(422),
			play: func(s *stage) { s.from(ours).pay() }},
		meets("a peer that is no proxy of ours says that it asks for us", pretender, fails(call.Upstream5xx)),
		meets("our proxy does not say for whom it asks", silent, fails(call.Upstream5xx)),
		meets("somebody comes to the door without a proxy", straight, fails(call.Upstream5xx)),
		{name: "our own scanner is served", want: served, play: func(s *stage) { s.from(ours).pay() }},
	}
}
