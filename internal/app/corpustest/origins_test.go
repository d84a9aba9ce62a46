package corpustest

import (
	"market/internal/app/apptest"
	"market/internal/call"
)

// provided returns the row of a service that is where its provider calls from.
func (r row) provided() row {
	r.home, r.looks = providerHome, leads(atHome, nil, nil)
	return r
}

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
		meets("the provider of the service meets a failure", provider, fails(call.Upstream5xx).unmoved()).provided(),
		row{name: "the provider of the service meets a failure in a trial call", does: apptest.Fails, want: fails(call.Upstream5xx).unmoved().free(),
			play: func(s *stage) { s.from(provider).try() }}.provided(),
		row{name: "the provider of the service is served", want: served, play: func(s *stage) { s.from(provider).pay() }}.provided(),
		meets("somebody else meets a failure of a service that is where its provider calls from", straight, fails(call.Upstream5xx)).provided(),
		{name: "the name of the service leads to its caller's address beside its own", does: apptest.Fails, looks: leads(append(here, beside...), nil, nil),
			play: func(s *stage) { s.from(friend).pay() }, want: fails(call.Upstream5xx)},
		{name: "our own scanner is served", want: served, play: func(s *stage) { s.from(ours).pay() }},
	}
}
