package corpustest

import (
	"net/http"

	"market/internal/app/apptest"
	"market/internal/call"
)

// retired takes the service off the shelf for good, suspended until an admin has looked.
func (s *stage) retired() {
	s.Helper()
	if status, answer := s.Admin(s, http.MethodDelete, "/api/v1/services/"+s.service.Slug, nil); status != http.StatusNoContent {
		s.Fatalf("retire: %d %v", status, answer)
	}
}

func (s *stage) suspended() {
	s.Helper()
	s.admin("suspend", "a look at it")
}

// admin does something to the service as an admin, with a reason.
func (s *stage) admin(does, reason string) {
	s.Helper()
	status, answer := s.Admin(s, http.MethodPost, "/api/v1/admin/services/"+s.service.Slug+"/"+does, map[string]any{"reason": reason})
	if status != http.StatusOK {
		s.Fatalf("%s: %d %v", does, status, answer)
	}
}

// gateRows are calls that we do not let through to the service.
func gateRows() []row {
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	return []row{
		plays("somebody asks for the terms of a service that rests", told(call.InCooldown, 503).striking(1, 1).restingFor(rest).moving(1, 1), func(s *stage) {
			s.fails(s.pay)
			apptest.Eventually(s, "the gate closes", func() bool { return s.send(s.ask, "").Status == http.StatusServiceUnavailable })
		}),
		plays("a payment meets a service that rests", resting, func(s *stage) { s.fails(s.pay); s.pay(); s.askedTimes(1) }),
		plays("a trial call meets a service that rests", resting.moving(1, 1), func(s *stage) { s.fails(s.pay); s.try(); s.askedTimes(1) }),
		plays("a payment meets a service that does not answer its probe", refused(call.NotLive, 503), func(s *stage) { s.service.SetLive(false); s.pay() }),
		plays("a trial call meets a service that does not answer its probe", refused(call.NotLive, 503), func(s *stage) { s.service.SetLive(false); s.try() }),
		{name: "the name of the service is gone when it is probed", looks: leads(nil, errNoSuchName, nil), want: refused(call.NotLive, 503)},
		{name: "our name server fails when the service is probed", looks: leads(nil, errNameServer, nil), want: refused(call.NotReady, 503)},
		{name: "our name server fails when the service is asked", looks: leads(here, nil, errNameServer), want: platformFails(call.EgressDown, 502)},
		{name: "our name server fails when the service is asked for a trial", looks: leads(here, nil, errNameServer),
			want: platformFails(call.EgressDown, 502).free(), play: func(s *stage) { s.try() }},
		plays("a payment meets a service that its provider took off the shelf", refused(call.NotListed, 410).being("retired"), func(s *stage) { s.retired(); s.pay() }),
		plays("a payment meets a service that an admin suspended", refused(call.NotListed, 503).being("suspended"), func(s *stage) { s.suspended(); s.pay() }),
		plays("a trial call meets a service that an admin suspended", refused(call.NotListed, 503).being("suspended"), func(s *stage) { s.suspended(); s.try() }),
		plays("a service that was suspended is listed again", served, func(s *stage) { s.suspended(); s.admin("relist", "it is well"); s.pay() }),
		{name: "a service has as many calls as its provider says it can take", service: map[string]any{"capacity": map[string]any{"concurrency": 1}},
			want: refused(call.OverCapacity, 503), play: func(s *stage) {
				slow := newSlow(s, `{"n":7}`, apptest.Works, apptest.Works)
				answer := s.begin(s.ask.With(`{"n":7}`).Trial(), "")
				<-slow.held
				s.pay()
				slow.let()
				answer()
			}},
	}
}
