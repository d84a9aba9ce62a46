package corpustest

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	"market/internal/app/apptest"
	"market/internal/call"
)

// callerRows are what callers do.
func callerRows() []row {
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	return []row{
		plays("a caller sends no payment", told(call.PaymentRequired, 402), func(s *stage) { s.send(s.ask, "") }),
		plays("a caller sends garbage for a payment", refused(call.PaymentMalformed, 400), func(s *stage) { s.send(s.ask, "!!!") }),
		plays("a caller agrees to other terms than ours", refused(call.PaymentMismatch, 402), func(s *stage) {
			s.send(s.ask, s.Sign(s, s.payer, apptest.Changed(s, s.terms, func(accepted map[string]any) { accepted["amount"] = "1" })))
		}),
		plays("a caller's signature is none", refused(call.PaymentInvalid, 402), func(s *stage) {
			s.send(s.ask, apptest.WithSignature(s, s.signed(), bytes.Repeat([]byte{1}, 66)))
		}),
		plays("a caller signs for a moment too short to be settled", refused(call.PaymentInvalid, 402), func(s *stage) {
			s.send(s.ask, s.SignFor(s, s.payer, s.terms, 5))
		}),
		plays("a stranger has no money", refused(call.PayerUnfunded, 402), func(s *stage) { s.payer = s.wallet(0); s.pay() }),
		plays("a caller pays and sends nothing", refused(call.InputEmpty, 400), func(s *stage) { s.send(s.ask.With(""), s.signed()) }),
		plays("a caller pays and sends what the input schema does not allow", refused(call.InputInvalid, 422), func(s *stage) {
			s.send(s.ask.With(`{"n":"x"}`), s.signed())
		}),
		plays("a caller pays and sends more than a body may have", refused(call.InputTooLarge, 413), func(s *stage) {
			s.send(s.ask.With(strings.Repeat(" ", 1<<20+1)), s.signed())
		}),
		plays("a caller tries and sends what the input schema does not allow", refused(call.InputInvalid, 422), func(s *stage) {
			s.send(s.ask.With(`{"n":"x"}`).Trial(), "")
		}),
		plays("a caller asks for a path that nobody sells", told(call.NotFound, 404), func(s *stage) {
			s.send(apptest.Ask(s.ask.URL+"/deeper"), s.signed())
		}),
		plays("a caller asks by a method that nobody sells", told(call.MethodNotAllowed, 405), func(s *stage) {
			s.send(apptest.Asking{Method: http.MethodGet, URL: s.ask.URL}, s.signed())
		}),
		{name: "a caller wants a trial where the listing has none", listing: map[string]any{"trial_calls_per_day": 0}, want: told(call.NotFound, 404),
			play: func(s *stage) { s.try() }},
		{name: "a caller wants more trials than the listing has in a day", listing: map[string]any{"trial_calls_per_day": 1},
			want: told(call.TrialExhausted, 429), play: func(s *stage) { s.serves(s.try); s.try() }},
		plays("one payment comes twenty times at once (B53)", served, func(s *stage) {
			header := s.signed()
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { s.SendBy(s, s.who.client, s.who.from(s.ask), header) })
			}
			wg.Wait()
			s.send(s.ask, header)
			s.askedTimes(1)
		}),
		plays("one payment comes again for another request", told(call.PaymentReused, 409).moving(1, 0), func(s *stage) {
			header := s.signed()
			s.send(s.ask, header)
			s.must("ok")
			s.send(s.ask.With(`{"n":2}`), header)
		}),
		plays("one payment comes again while its call is under way", told(call.InProgress, 409).moving(1, 0), func(s *stage) {
			slow, header := newSlow(s, `{"n":1}`, apptest.Works, apptest.Works), s.signed()
			answer := s.begin(s.ask, header)
			<-slow.held
			s.send(s.ask, header)
			slow.let()
			answer()
		}),
		plays("one payment comes again from somebody else, who is to prove that the answer is his (B57)", told(call.ProofRequired, 409).moving(1, 0), func(s *stage) {
			header := s.signed()
			s.send(s.ask, header)
			s.must("ok")
			s.from(straight).send(s.ask, header)
		}),
		plays("the payment of a call that failed comes again", fails(call.Upstream5xx), func(s *stage) {
			s.service.Do(apptest.Fails)
			header := s.signed()
			s.send(s.ask, header)
			s.must("upstream_5xx")
			s.send(s.ask, header)
			s.askedTimes(1)
		}),
		plays("a caller leaves while the service works for it (B87)", served.with(0), func(s *stage) {
			slow := newSlow(s, `{"n":1}`, apptest.Works, apptest.Works)
			asked := make(chan struct{})
			go func() { <-slow.held; close(asked) }()
			s.SendAndLeave(s, s.who.from(s.ask), s.signed(), asked)
			slow.let()
			s.ended(s.newest())
		}),
		{name: "a caller provokes refusals of the service until it has had five calls refunded", does: apptest.Answers(422, ""),
			want: refused(call.RefundLimit, 429).moving(5, 5), play: func(s *stage) {
				for range 5 {
					s.pay()
					s.must("rejected_by_service")
				}
				s.pay()
				s.askedTimes(5)
			}},
	}
}

// askedTimes checks how often the service was asked.
func (s *stage) askedTimes(n int) {
	s.Helper()
	if got := s.service.Asked(); got != n {
		s.Errorf("the service was asked %d times, want %d", got, n)
	}
}
