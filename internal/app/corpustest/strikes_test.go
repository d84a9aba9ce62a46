package corpustest

import (
	"net/http"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
)

// delisted is the failure that takes a service off the shelf.
var delisted = fails(call.Upstream5xx).striking(3, 3).moving(3, 3).being("delisted")

// three makes three failures, each after the rest of the one before.
func (s *stage) three(each func() apptest.Answer) {
	s.Helper()
	for n := range 3 {
		if n > 0 {
			s.over()
		}
		s.fails(each)
	}
}

// strikeRows are failures one after another, and what counts among them.
func strikeRows() []row {
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	return []row{
		plays("two failures, the second after the rest of the first", fails(call.Upstream5xx).striking(2, 2).moving(2, 2), func(s *stage) {
			s.fails(s.pay)
			s.over()
			s.fails(s.pay)
		}),
		plays("three failures, each after the rest before it", delisted, func(s *stage) { s.three(s.pay) }),
		plays("three failures of trial calls, each after the rest before it", delisted.free(), func(s *stage) { s.three(s.try) }),
		plays("three failures that nobody can attribute", delisted, func(s *stage) { s.from(pretender).three(s.pay) }),
		plays("three failures of three kinds", fails(call.UpstreamAuth).striking(3, 3).moving(3, 3).being("delisted"), func(s *stage) {
			for n, work := range []http.HandlerFunc{apptest.Fails, apptest.HangsUp(""), apptest.Answers(401, "")} {
				if n > 0 {
					s.over()
				}
				s.service.Do(work)
				s.pay()
			}
		}),
		plays("a failure, a success, and two failures", fails(call.Upstream5xx).striking(2, 2).moving(4, 3), func(s *stage) {
			s.fails(s.pay)
			s.over()
			s.serves(s.pay)
			s.fails(s.pay)
			s.over()
			s.fails(s.pay)
		}),
		plays("a failure, a success of our own, and two failures", delisted.moving(4, 3), func(s *stage) {
			s.fails(s.pay)
			s.over()
			s.from(ours).serves(s.pay)
			s.from(outside(s.number)).fails(s.pay)
			s.over()
			s.fails(s.pay)
		}),
		plays("three failures with refusals of the service between them", delisted.moving(5, 5), func(s *stage) {
			for n := range 3 {
				if n > 0 {
					s.over()
					s.service.Do(apptest.Answers(422, ""))
					s.pay()
					s.must("rejected_by_service")
				}
				s.fails(s.pay)
			}
		}),
		plays("three failures with calls between them that the rests refuse", delisted.moving(5, 5), func(s *stage) {
			for n := range 3 {
				if n > 0 {
					s.rests(s.pay)
					s.over()
				}
				s.fails(s.pay)
			}
			s.askedTimes(3)
		}),
		plays("four failures of our own scanner", fails(call.Upstream5xx).unmoved().moving(4, 4), func(s *stage) {
			s.from(ours)
			for range 4 {
				s.fails(s.pay)
			}
		}),
		plays("four failures that only the provider of the service meets", fails(call.Upstream5xx).unmoved().moving(4, 4), func(s *stage) {
			s.from(provider)
			for range 4 {
				s.fails(s.pay)
			}
		}).provided(),
		plays("two failures, and two of our own scanner", fails(call.Upstream5xx).striking(2, 2).restingFor(0).moving(4, 4), func(s *stage) {
			for range 2 {
				s.fails(s.pay)
				s.over()
			}
			s.from(ours)
			for range 2 {
				s.fails(s.pay)
			}
		}),
		plays("the service is asked too often, three times", flagged(call.UpstreamThrottled).moving(3, 3), func(s *stage) {
			s.service.Do(apptest.Answers(429, ""))
			s.pay()
			s.over()
			s.pay()
			s.over()
			s.pay()
		}),
		{name: "the service answers more than its listing allows, three times", listing: map[string]any{"max_response_bytes": 10},
			want: flagged(call.UpstreamTooLarge).moving(3, 3), play: func(s *stage) {
				s.pay()
				s.over()
				s.pay()
				s.over()
				s.pay()
			}},
		plays("the service does not answer its probe, three times", refused(call.NotLive, 503), func(s *stage) {
			s.service.SetLive(false)
			s.pay()
			s.over()
			s.pay()
			s.over()
			s.pay()
		}),
		{name: "our name server fails whenever the service is asked", want: platformFails(call.EgressDown, 502).moving(3, 3), looks: unlucky,
			play: func(s *stage) {
				for range 3 {
					s.pay()
					s.must("egress_down")
				}
			}},
		plays("two failures, and a third a day after the first", fails(call.Upstream5xx).striking(2, 2).moving(3, 3), func(s *stage) {
			s.fails(s.pay)
			s.wait(12 * time.Hour)
			s.fails(s.pay)
			s.wait(12*time.Hour + time.Minute)
			s.fails(s.pay)
		}),
		plays("two failures, and a third within a day of the first", delisted, func(s *stage) {
			s.fails(s.pay)
			s.wait(12 * time.Hour)
			s.fails(s.pay)
			s.wait(12*time.Hour - 10*time.Minute)
			s.fails(s.pay)
		}),
		plays("a payment meets a service that its strikes have delisted", refused(call.NotListed, 410).striking(3, 3).moving(3, 3).being("delisted"), func(s *stage) {
			s.three(s.pay)
			s.over()
			s.gone()
			s.pay()
		}),
		plays("a trial call meets a service that its strikes have delisted", refused(call.NotListed, 410).striking(3, 3).moving(3, 3).being("delisted"), func(s *stage) {
			s.three(s.pay)
			s.over()
			s.gone()
			s.try()
		}),
		plays("nothing brings a delisted service back when its strikes are old", refused(call.NotListed, 410).moving(3, 3).being("delisted"), func(s *stage) {
			s.three(s.pay)
			s.wait(25 * time.Hour)
			s.service.Do(apptest.Works)
			s.gone()
			s.pay()
		}),
		// It was asked after the evidence of the first two strikes, and clears them; nothing comes back by that.
		plays("a call is under way when its service is delisted, and served", served.striking(1, 1).restingFor(rest).moving(4, 3).being("delisted"), func(s *stage) {
			s.service.Do(apptest.Fails)
			s.pay()
			s.over()
			s.pay()
			s.over()
			s.overtaken(apptest.Works)()
		}),
	}
}

// gone waits until the door knows that the service is not for sale.
func (s *stage) gone() {
	s.Helper()
	apptest.Eventually(s, "the door knows that the service is gone", func() bool { return s.Send(s, s.ask, "").Status == http.StatusGone })
}
