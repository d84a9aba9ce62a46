package corpustest

import (
	"net/http"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
)

// decide has an admin decide about the nth strike of the service, from 0 for the oldest.
func (s *stage) decide(n int, does string) {
	s.Helper()
	_, view := s.Admin(s, http.MethodGet, "/api/v1/admin/strikes/"+s.service.Slug, nil)
	items, _ := view["items"].([]any)
	if len(items) <= n {
		s.Fatalf("there is no strike %d: %v", n, view)
	}
	strike, _ := items[n].(map[string]any)
	id, _ := strike["id"].(string)
	if status, answer := s.Admin(s, http.MethodPost, "/api/v1/admin/strikes/"+id+"/"+does, map[string]any{"reason": "as it was seen"}); status != http.StatusOK {
		s.Fatalf("%s: %d %v", does, status, answer)
	}
}

// reviewRows are what admins decide about strikes, and what becomes of the service.
func reviewRows() []row {
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	return []row{
		plays("an admin voids the strike that delisted the service", served.moving(4, 3), func(s *stage) {
			s.three(s.pay)
			s.decide(2, "void")
			s.serves(s.pay)
		}),
		plays("an admin voids the first of three strikes, and the service fails once more", delisted.moving(4, 4), func(s *stage) {
			s.three(s.pay)
			s.decide(0, "void")
			s.over()
			s.fails(s.pay)
		}),
		plays("an admin voids a strike, whose rest ends with it", served.moving(2, 1), func(s *stage) {
			s.fails(s.pay)
			s.decide(0, "void")
			s.serves(s.pay)
		}),
		plays("a call that was asked before the failure fails after an admin has voided the strike", fails(call.Upstream5xx).striking(0, 0).moving(2, 2), func(s *stage) {
			s.wait(28 * time.Minute) // where nobody else works while the service holds the call
			end := s.overtaken(apptest.Fails)
			s.decide(0, "void")
			s.over()
			end()
		}),
		plays("an admin upholds a strike, and the next two failures delist", delisted, func(s *stage) {
			s.fails(s.pay)
			s.decide(0, "uphold")
			s.over()
			s.fails(s.pay)
			s.over()
			s.fails(s.pay)
		}),
		plays("an admin lists a delisted service again, and it fails once", fails(call.Upstream5xx).moving(4, 4), func(s *stage) {
			s.three(s.pay)
			s.admin("relist", "it was mended")
			s.over()
			s.fails(s.pay)
		}),
	}
}

// twoSources is where a service is delisted only on the evidence of two networks.
var twoSources = &place{name: "two sources are needed", env: []string{"MARKET_STRIKE_SOURCES=2"}, advance: hours.advance, passes: true}

// sourceRows are failures that one network alone meets, and some that others meet too.
func sourceRows() []row {
	holds := fails(call.Upstream5xx).striking(3, 3).moving(3, 3).being("held")
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	return []row{
		plays("three failures that callers of one network meet, where two are needed", holds, func(s *stage) { s.three(s.pay) }),
		plays("three failures of trial calls of one network, where two are needed", holds.free(), func(s *stage) { s.three(s.try) }),
		plays("three failures, one of which somebody else meets, where two networks are needed", delisted, func(s *stage) {
			s.fails(s.pay)
			s.over()
			s.from(straight).fails(s.pay)
			s.over()
			s.from(outside(s.number)).fails(s.pay)
		}),
		plays("a payment meets a service that is held for its strikes", refused(call.NotListed, 503).striking(3, 3).moving(3, 3).being("held"), func(s *stage) {
			s.three(s.pay)
			s.over()
			apptest.Eventually(s, "the door knows that the service is held", func() bool { return s.Send(s, s.ask, "").Code() == string(call.NotListed) })
			s.pay()
		}),
		plays("an admin lists a service again that was held for its strikes", served.moving(4, 3), func(s *stage) {
			s.three(s.pay)
			s.admin("relist", "one caller alone met that")
			s.over()
			s.serves(s.pay)
		}),
	}
}

// outages is where many services fail at once. Its rows come one after another: what fails in one minute is one thing to a market.
var outages = &place{name: "outages of our own", atOnce: 1}

// neighbours lists other services at hosts of their own; each serves a trial call, so that it is known to work.
func (s *stage) neighbours(hosts ...string) (fail func()) {
	s.Helper()
	var others []*apptest.Service
	for _, host := range hosts {
		s.names.lead(host, leads(here, nil, nil))
		o := s.ListNamed(s, host, here[0].String(), s.service.Slug+"-"+slugOf(host), apptest.Works, map[string]any{"trial_calls_per_day": 100}, nil)
		others = append(others, o)
	}
	each := func(want string) {
		for _, o := range others {
			a := s.SendBy(s, s.who.client, s.who.from(apptest.Ask(o.URL).Trial()), "")
			if got := a.Code(); got != want {
				s.Fatalf("%s: %d %s", o.Slug, a.Status, a.Body)
			}
		}
	}
	each("")
	return func() {
		for _, o := range others {
			o.Do(apptest.Fails)
		}
		each(string(call.Upstream5xx))
	}
}

// outageRows are failures that are ours, because so many services of so many providers have them at once.
func outageRows() []row {
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	excused := fails(call.Upstream5xx).unmoved()
	excused.party = call.Platform
	return []row{
		plays("five services of one provider fail within a minute", fails(call.Upstream5xx).moving(2, 1), func(s *stage) {
			fail := s.neighbours("a"+domain, "b"+domain, "c"+domain, "d"+domain)
			s.serves(s.pay)
			fail()
			s.fails(s.pay)
		}),
		plays("five services of three providers fail within a minute, and one fails again (B136)", excused.moving(3, 2), func(s *stage) {
			fail := s.neighbours("a.first.test", "b.first.test", "a.second.test", "b.second.test")
			s.serves(s.pay)
			s.fails(s.pay)
			fail()
			apptest.Eventually(s, "the strike from before is void", func() bool { return len(s.OpenStrikes(s, s.service.Slug)) == 0 })
			s.fails(s.pay)
		}),
		plays("a service fails when an outage of ours is over", fails(call.Upstream5xx).moving(2, 1), func(s *stage) {
			s.serves(s.pay)
			s.Shift(s, 11*time.Minute)
			apptest.Eventually(s, "the outage is over", s.calm)
			s.fails(s.pay)
		}),
	}
}

// calm says that no outage of ours holds.
func (s *stage) calm() bool {
	s.Helper()
	_, view := s.Admin(s, http.MethodGet, "/api/v1/admin/outages", nil)
	items, _ := view["items"].([]any)
	for _, item := range items {
		if o, _ := item.(map[string]any); o["ended_at"] == nil {
			return false
		}
	}
	return true
}
