package corpustest

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/payment"
)

// holds is how many prices a payer has.
const holds = 12

// A stage is where a row is played: a service and a payer of its own in a market that it may share.
type stage struct {
	testing.TB
	*market
	row     row
	number  int
	service *apptest.Service
	ask     apptest.Asking
	terms   payment.Required
	payer   chain.Key
	wallets map[chain.Key]uint64 // what each held
	who     caller
	door    *apptest.World
	held    *slow // nil: it holds nobody

	last apptest.Answer // of the call that is judged; without a status where its end came later
	call string         // its id

	goesOn bool // it has not ended when the row does
	trial  bool // it was made by try
}

// from has others make the calls that follow.
func (s *stage) from(c caller) *stage { s.who = c; return s }

// at has the calls that follow come to the door of another replica, which has to know the service first.
func (s *stage) at(door *apptest.World) *stage {
	s.Helper()
	s.door = door
	apptest.Eventually(s, "the replica knows the service", func() bool {
		return s.SendBy(s, s.who.client, door.At(s, s.who.from(s.ask)), "").Code() != "not_found"
	})
	return s
}

// wallet returns another payer, with so many prices.
func (s *stage) wallet(prices uint64) chain.Key {
	s.Helper()
	key := s.Payer(s, prices*apptest.PriceUnits)
	s.wallets[key] = prices * apptest.PriceUnits
	return key
}

// send sends an asking, with a payment where one is given, and has its answer judged unless another one follows.
func (s *stage) send(a apptest.Asking, header string) apptest.Answer {
	s.Helper()
	s.last = s.SendBy(s, s.who.client, s.door.At(s, s.who.from(a)), header)
	s.call = s.last.Call()
	return s.last
}

// signed is a payment for the terms of the service.
func (s *stage) signed() string { s.Helper(); return s.Sign(s, s.payer, s.terms) }

// pay makes a paid call.
func (s *stage) pay() apptest.Answer { s.Helper(); s.trial = false; return s.send(s.ask, s.signed()) }

// try makes a trial call.
func (s *stage) try() apptest.Answer { s.Helper(); s.trial = true; return s.send(s.ask.Trial(), "") }

// must checks how the call before ended.
func (s *stage) must(reason string) {
	s.Helper()
	got := s.last.Code()
	if s.last.Outcome() == "served" {
		got = "ok"
	}
	if got != reason {
		s.Fatalf("a call on the way ended %d %s, want %s: %s", s.last.Status, got, reason, s.last.Body)
	}
}

// fails makes the service fail a call, paid or a trial.
func (s *stage) fails(make func() apptest.Answer) {
	s.Helper()
	s.service.Do(apptest.Fails)
	make()
	s.must("upstream_5xx")
}

// serves makes the service serve a call.
func (s *stage) serves(make func() apptest.Answer) {
	s.Helper()
	s.service.Do(apptest.Works)
	make()
	s.must("ok")
}

// rests makes a call that meets the service's rest.
func (s *stage) rests(make func() apptest.Answer) {
	s.Helper()
	make()
	s.must("in_cooldown")
}

// wait lets the market's time pass.
func (s *stage) wait(d time.Duration) { s.clock.await(s.clock.now() + int64(d)) }

// over lets a rest pass.
func (s *stage) over() { s.wait(rest + time.Second) }

// ended says that the call which is judged ended without anybody who was told, and waits for that.
func (s *stage) ended(id string) {
	s.Helper()
	s.last, s.call = apptest.Answer{}, id
	s.recorded()
}

// recorded waits until the call that is judged has ended.
func (s *stage) recorded() {
	s.Helper()
	apptest.Eventually(s, "call "+s.call+" ends as "+string(s.row.want.reason), func() bool {
		return s.Books(s, s.call).Reason == string(s.row.want.reason)
	})
}

const newestSQL = `SELECT id::text FROM calls WHERE payer = $1 ORDER BY created_at DESC LIMIT 1`

// newest is the newest call of the payer; empty where it has none.
func (s *stage) newest() (id string) {
	s.Helper()
	payer := s.payer.Address()
	if err := s.DB.QueryRow(s.Context(), newestSQL, payer[:]).Scan(&id); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		s.Fatal(err)
	}
	return id
}

// begin makes a call that goes on while the row does, and returns what waits for its answer.
func (s *stage) begin(a apptest.Asking, header string) (answer func() apptest.Answer) {
	s.Helper()
	a, client := s.door.At(s, s.who.from(a)), s.who.client
	var (
		got  apptest.Answer
		done sync.WaitGroup
	)
	done.Go(func() { got = s.SendBy(s, client, a, header) })
	s.Cleanup(func() {
		if s.held != nil {
			s.held.let()
		}
		done.Wait()
	})
	return func() apptest.Answer {
		done.Wait()
		return got
	}
}

// judgeOn has an answer judged.
func (s *stage) judgeOn(a apptest.Answer) { s.last, s.call = a, a.Call() }

// A slow is a service that holds the calls whose body it is told to hold, and does to all others something else.
type slow struct {
	hold    string
	held    chan struct{} // gets one for each call that is held
	release chan struct{}
	then    http.HandlerFunc
	others  http.HandlerFunc
}

func newSlow(s *stage, hold string, then, others http.HandlerFunc) *slow {
	w := &slow{hold: hold, held: make(chan struct{}, 100), release: make(chan struct{}), then: then, others: others}
	s.service.Do(w.work)
	s.held = w
	return w
}

func (w *slow) work(rw http.ResponseWriter, r *http.Request) {
	body := make([]byte, len(w.hold))
	n, _ := r.Body.Read(body)
	if string(body[:n]) != w.hold {
		w.others(rw, r)
		return
	}
	w.held <- struct{}{}
	<-w.release
	w.then(rw, r)
}

// let lets those go that are held.
func (w *slow) let() {
	select {
	case <-w.release:
	default:
		close(w.release)
	}
}
