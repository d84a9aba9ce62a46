package corpustest

import (
	"net/http"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
)

// own starts a replica of the row's own, and has the calls that follow come to its door.
func (s *stage) own() *apptest.World {
	s.Helper()
	replica := s.Replica(s)
	s.at(replica)
	return replica
}

// leases is more than the lease of a call: its service gets a minute, and the lease 30 s more.
const leases = 2 * time.Minute

// fleetRows are calls at several programs of one market, some of which have a wrong clock, or die.
func fleetRows() []row {
	plays := func(name string, w want, play func(s *stage)) row { return row{name: name, play: play, want: w} }
	return []row{
		plays("a rest holds at a program whose clock is 90 seconds behind that of the one which began it", resting, func(s *stage) {
			s.at(s.ahead()).fails(s.pay)
			s.at(s.behind()).pay()
		}),
		plays("a rest is over at a program whose clock is 90 seconds behind that of the one which began it", served.moving(2, 1), func(s *stage) {
			s.at(s.ahead()).fails(s.pay)
			s.over()
			s.at(s.behind()).serves(s.pay)
		}),
		plays("three failures at three programs with three clocks", delisted, func(s *stage) {
			s.at(s.ahead()).fails(s.pay)
			s.over()
			s.at(s.behind()).fails(s.pay)
			s.over()
			s.at(s.World).fails(s.pay)
		}),
		plays("two failures at two programs with two clocks, and a success between them", fails(call.Upstream5xx).moving(3, 2), func(s *stage) {
			s.at(s.behind()).fails(s.pay)
			s.over()
			s.at(s.ahead()).serves(s.pay)
			s.at(s.behind()).fails(s.pay)
		}),
		plays("twelve calls are under way at three programs with three clocks when the service fails them all",
			fails(call.Upstream5xx).striking(1, 12).moving(12, 12), func(s *stage) {
				s.wait(13 * time.Minute)
				s.at(s.ahead()).at(s.behind())
				s.service.Do(barrier(12))
				s.atOnce(12, s.paidCall, s.World, s.ahead(), s.behind())
			}),
		plays("one payment comes to two programs with two clocks", served, func(s *stage) {
			s.at(s.behind()).at(s.ahead())
			header := s.signed()
			s.atOnce(6, func() (apptest.Asking, string) { return s.ask, header }, s.ahead(), s.behind())
			s.send(s.ask, header)
			s.askedTimes(1)
		}),
		plays("the program dies while the service works for a call", platformFails(call.Interrupted, 0), func(s *stage) {
			slow, replica := newSlow(s, `{"n":1}`, apptest.Works, apptest.Works), s.own()
			asked := make(chan struct{})
			go func() { <-slow.held; close(asked) }()
			s.SendAndLeave(s, replica.At(s, s.who.from(s.ask)), s.signed(), asked)
			id := s.newest()
			replica.App.Kill()
			slow.let()
			s.wait(leases)
			s.ended(id)
		}),
		plays("the program dies while the service works for a call, whose caller sends its payment again", platformFails(call.Interrupted, http.StatusInternalServerError), func(s *stage) {
			slow, replica := newSlow(s, `{"n":1}`, apptest.Works, apptest.Works), s.own()
			header, asked := s.signed(), make(chan struct{})
			go func() { <-slow.held; close(asked) }()
			s.SendAndLeave(s, replica.At(s, s.who.from(s.ask)), header, asked)
			replica.App.Kill()
			slow.let()
			s.wait(leases)
			s.at(s.World)
			apptest.Eventually(s, "the caller is told how its call ended", func() bool { return s.send(s.ask, header).Code() == string(call.Interrupted) })
			s.askedTimes(1)
		}),
		plays("the program stops while the service works for a call", served, func(s *stage) {
			slow, replica := newSlow(s, `{"n":1}`, apptest.Works, apptest.Works), s.own()
			answer := s.begin(s.ask, s.signed())
			<-slow.held
			stopped := make(chan error, 1)
			go func() { stopped <- replica.App.Stop(s.Context()) }()
			slow.let()
			s.judgeOn(answer())
			if err := <-stopped; err != nil {
				s.Error(err)
			}
		}),
		plays("a rest holds at a program that starts in the middle of it", resting, func(s *stage) {
			s.fails(s.pay)
			s.at(s.Replica(s)).pay()
		}),
		plays("the third failure comes after the program that met two has died", delisted, func(s *stage) {
			replica := s.own()
			s.fails(s.pay)
			s.over()
			s.fails(s.pay)
			replica.App.Kill()
			s.over()
			s.at(s.World).fails(s.pay)
		}),
	}
}

// unfoldedRows are what becomes of failures where each opens a strike of its own.
func unfoldedRows() []row {
	return []row{
		{name: "two calls are under way when the service fails them, and failures do not fold", does: barrier(2),
			want: fails(call.Upstream5xx).striking(2, 2).moving(2, 2), play: func(s *stage) { s.atOnce(2, s.paidCall) }},
		{name: "five calls are under way when the service fails them, and failures do not fold", does: barrier(5),
			want: fails(call.Upstream5xx).striking(5, 5).moving(5, 5).being("delisted"), play: func(s *stage) { s.atOnce(5, s.paidCall) }},
	}
}
