package corpustest

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
)

// barrier is a service that fails so many calls at once: nobody is answered before everybody has been asked.
func barrier(calls int) http.HandlerFunc {
	var arrived atomic.Int64
	all := make(chan struct{})
	return func(rw http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == int64(calls) {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(apptest.Patience): // somebody did not come, and the row fails
		}
		apptest.Fails(rw, r)
	}
}

// atOnce makes so many calls at once, each at the next of the doors.
func (s *stage) atOnce(calls int, make func() (apptest.Asking, string), doors ...*apptest.World) {
	s.Helper()
	var answers []func() apptest.Answer
	for i := range calls {
		if len(doors) > 0 {
			s.door = doors[i%len(doors)]
		}
		answers = append(answers, s.begin(make()))
	}
	for _, answer := range slices.Backward(answers) {
		s.judgeOn(answer()) // in the end the first
	}
}

func (s *stage) paidCall() (apptest.Asking, string)  { return s.ask, s.signed() }
func (s *stage) trialCall() (apptest.Asking, string) { return s.ask.Trial(), "" }

// held is the body of a call that a slow service holds.
const held = `{"n":7}`

// overtaken begins a call that the service holds, and meanwhile fails another one. The call that is held is the one that is judged: end has it end.
func (s *stage) overtaken(then http.HandlerFunc) (end func()) {
	s.Helper()
	slow := newSlow(s, held, then, apptest.Fails)
	answer := s.begin(s.ask.With(held), s.signed())
	<-slow.held
	s.pay()
	s.must("upstream_5xx")
	return func() {
		slow.let()
		s.judgeOn(answer())
	}
}

// incidentRows are failures that belong together, and some that do not.
func incidentRows() []row {
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	return []row{
		plays("twenty payments and thirty trial calls are under way when the service fails them all", fails(call.Upstream5xx).striking(1, 50).moving(20, 20), func(s *stage) {
			s.payer = s.wallet(20)
			s.wait(10 * time.Minute) // so many at once want the machine for themselves
			s.service.Do(barrier(50))
			n := 0
			s.atOnce(50, func() (apptest.Asking, string) {
				if n++; n > 20 {
					return s.trialCall()
				}
				return s.paidCall()
			})
		}),
		plays("ten payments meet a rest at once", resting.moving(11, 11), func(s *stage) {
			s.payer = s.wallet(20)
			s.wait(12 * time.Minute)
			s.fails(s.pay)
			s.atOnce(10, s.paidCall)
			s.askedTimes(1)
		}),
		plays("calls that a rest refuses do not make it longer", served.moving(4, 3), func(s *stage) {
			s.wait(14 * time.Minute) // where nobody else's calls take of its rest
			s.fails(s.pay)
			s.wait(20 * time.Second)
			s.rests(s.pay)
			s.wait(15 * time.Second) // and not to the end: the calls take a while of their own
			s.rests(s.pay)
			s.wait(26 * time.Second)
			s.service.Do(apptest.Works)
			s.pay()
		}),
		plays("calls that a rest refuses count nothing", fails(call.Upstream5xx).striking(2, 2).moving(6, 6), func(s *stage) {
			s.wait(18 * time.Minute) // as above
			s.fails(s.pay)
			for range 4 {
				s.wait(7 * time.Second)
				s.rests(s.pay)
			}
			s.wait(33 * time.Second)
			s.pay()
			s.askedTimes(2)
		}),
		plays("a call that was asked before the failure fails long after the rest", fails(call.Upstream5xx).striking(1, 2).moving(2, 2), func(s *stage) {
			s.wait(20 * time.Minute) // where nobody else works while the service holds the call
			end := s.overtaken(apptest.Fails)
			s.over()
			end()
		}),
		plays("a call that was asked before the failure fails after a success has cleared it", fails(call.Upstream5xx).striking(0, 0).moving(3, 2), func(s *stage) {
			s.wait(24 * time.Minute) // where nobody else works while the service holds the call
			end := s.overtaken(apptest.Fails)
			s.over()
			s.serves(s.pay)
			end()
		}),
		plays("a call that was asked before the failure is served after it, which clears nothing", served.striking(1, 1).restingFor(rest).moving(2, 1), func(s *stage) {
			s.overtaken(apptest.Works)()
		}),
		plays("a success that is asked after the rest clears the strike", served.moving(2, 1), func(s *stage) { s.fails(s.pay); s.over(); s.serves(s.pay) }),
		plays("a trial success clears what paid calls counted", served.moving(2, 2), func(s *stage) {
			for range 2 {
				s.fails(s.pay)
				s.over()
			}
			s.serves(s.try)
		}),
		plays("a paid success clears what trial calls counted", served.moving(1, 0), func(s *stage) { s.fails(s.try); s.over(); s.serves(s.pay) }),
		plays("our own success clears nothing", served.striking(1, 1).moving(2, 1), func(s *stage) { s.fails(s.pay); s.over(); s.from(ours).serves(s.pay) }),
		plays("the provider's own success clears nothing", served.striking(1, 1).moving(2, 1), func(s *stage) {
			s.fails(s.pay)
			s.over()
			s.from(provider).serves(s.pay)
		}).provided(),
		plays("a success that nobody can attribute clears", served.moving(2, 1), func(s *stage) { s.fails(s.pay); s.over(); s.from(pretender).serves(s.pay) }),
		plays("what the service turns down clears nothing", turnedDown(422).striking(1, 1).moving(2, 2), func(s *stage) {
			s.fails(s.pay)
			s.over()
			s.service.Do(apptest.Answers(422, ""))
			s.pay()
		}),
		{name: "a caller that leaves a stream clears nothing", listing: streaming("idle_timeout_ms", 60_000),
			want: want{outcome: call.Served, reason: call.CallerLeft, party: call.Caller, status: 200, paid: 2, back: 1, strikes: 1}, play: func(s *stage) {
				s.fails(s.pay)
				s.over()
				pieces := make(chan string, 1)
				pieces <- event
				f := s.stream(pieces, false)
				f.Next(event)
				_ = f.Body.Close()
				s.recorded()
			}},
		plays("an answer is asked for again a day later", told(call.AnswerExpired, 410).moving(1, 0), func(s *stage) {
			header := s.signed()
			s.send(s.ask, header)
			s.must("ok")
			s.wait(24*time.Hour + time.Second)
			s.send(s.ask, header)
		}),
	}
}
