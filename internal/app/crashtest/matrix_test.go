package crashtest

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/crash"
)

// atOnce is how many cases run beside each other, each in a world of its own: most of the time they wait for a block or a sweep.
const atOnce = 8

func TestTable_HasARowForEveryPointAndNoOther(t *testing.T) {
	t.Parallel()
	rows := table()
	for _, p := range crash.Points() {
		if _, there := rows[p]; !there {
			t.Errorf("nobody says what becomes of a call whose server dies at %s", p)
		}
		delete(rows, p)
	}
	for p := range rows {
		t.Errorf("%s is no point of the program", p)
	}
}

// A column is who else is there when the server starts again.
type column struct {
	retries bool // the caller sends the same payment again
	serves  bool // the service serves, else it fails
}

var columns = []column{{true, true}, {true, false}, {false, true}, {false, false}}

func (c column) String() string {
	name := "gone "
	if c.retries {
		name = "retry "
	}
	if c.serves {
		return name + "serves"
	}
	return name + "fails"
}

// A kase is one cell of the matrix.
type kase struct {
	column
	point crash.Point
	row   row
}

func (k kase) want() outcome {
	p := k.row.gone
	if k.retries {
		p = k.row.retry
	}
	if k.serves {
		return p.serves
	}
	return p.fails
}

// cases returns all of them, point by point.
func cases() []kase {
	var all []kase
	rows := table()
	for _, p := range crash.Points() {
		for _, c := range columns {
			all = append(all, kase{c, p, rows[p]})
		}
	}
	return all
}

// everyCell asks for the whole matrix.
const everyCell = "MARKET_CRASH_EVERY_CELL"

// plays says whether the cell at i of cases is played: each where that is asked for. Beside all other tests a point has one of its four, and the points take
// turns, so that neighbours, which are sides of the same step in most cases, have others.
func plays(i int) bool {
	return os.Getenv(everyCell) != "" || i%len(columns) == i/len(columns)%len(columns)
}

// The server is killed at every point, with a caller that comes back and one that does not, and with a service that serves and one that
// fails; after a restart every call ends as the table says, with the transfers and the requests that it says.
func TestMatrix(t *testing.T) {
	t.Parallel()
	var (
		all   = cases()
		queue = make(chan int)
		tally = apptest.NewTally(len(all))
		wg    sync.WaitGroup
	)
	for range atOnce {
		wg.Go(func() {
			var w *world
			for i := range queue {
				k := all[i]
				t.Run(fmt.Sprintf("%s/%s", k.point, k.column), func(one *testing.T) {
					defer func() { tally.Ended(i, !one.Failed()) }()
					if w == nil {
						w = newWorld(t)
					}
					k.run(one, w)
				})
				if tally.At(i) == apptest.Otherwise {
					w = nil // a call that has not ended would disturb the next
				}
			}
			if w != nil {
				w.stays(t)
			}
		})
	}
	for i := range all {
		if plays(i) {
			queue <- i
		}
	}
	close(queue)
	wg.Wait()
	fmt.Print(text(all, tally))
}

// run plays one case.
func (k kase) run(t *testing.T, w *world) {
	t.Log(k.row.scene.name)
	s := &stage{world: w, name: fmt.Sprintf("%s %s", k.point, k.column), point: k.point, after: apptest.Fails, want: k.want()}
	if k.serves {
		s.after = apptest.Works
	}
	if k.row.scene.before != nil {
		s.start(t, "")
		s.set(t, k.row.scene.work)
		k.row.scene.before(t, s)
		s.server.Kill()
		s.start(t, k.point)
	} else {
		s.start(t, k.point)
		s.set(t, k.row.scene.work)
	}
	k.row.scene.play(t, s)
	s.dies(t)
	if k.row.scene.mend != nil {
		k.row.scene.mend(t, s)
	}
	s.recover(t, k.retries, k.row.late)
}

// set puts the call's service on the shelf and signs its payment.
func (s *stage) set(t testing.TB, work http.HandlerFunc) {
	t.Helper()
	if work == nil {
		work = s.after
	}
	s.list(t, work)
	s.sign(t)
}

// recover starts the server again and lets the call come to its end.
func (s *stage) recover(t testing.TB, retries, late bool) {
	t.Helper()
	s.service.Do(s.after)
	if retries && !late {
		// The caller comes before the sweeper does: what must not be taken over is there to be taken.
		s.holdOff(t, time.Hour)
	} else {
		s.holdOff(t, 0)
	}
	s.start(t, "")
	defer func() { s.server.Kill() }()
	s.Shift(t, leases)
	if retries && !late {
		s.send(t.Context())
		s.holdOff(t, 0)
		s.insist(t)
	}
	if s.want.lapses {
		s.Lapse(t, s.paid.ValidBefore, 2) // the proof stands at a depth
	}
	got := s.books(t)
	want := s.want.end
	s.until(t, fmt.Sprintf("the call ends as %s", want), func() bool {
		got = s.books(t)
		return got.state == want.state && got.reason == want.reason && got.refund == want.refund
	})
	if retries {
		s.insist(t)
	}
	if got = s.look(t); got != want {
		t.Fatalf("the call ended as %s, want %s", got, want)
	}
	s.ended = append(s.ended, s)
}

// insist sends the payment until the caller is told something that waiting does not change, and lets the sweeper have a look in between, as
// Retry-After asks for. A 402, on which a client signs another payment, meets no payment that has moved, but for one that moves after its
// caller was told no.
func (s *stage) insist(t testing.TB) {
	t.Helper()
	looks := 0
	eventually(t, "the caller is told how its call ended", func() bool {
		s.balanced(t)
		if looks++; looks%sweep != 1 {
			return false
		}
		r := s.send(t.Context())
		if r.status == http.StatusPaymentRequired && s.want.in > 0 && s.want != moved {
			t.Fatalf("a payment that has moved is answered by %+v", r)
		}
		return !r.waits() || s.want.lapses
	})
}

// stays looks once more at all calls of a world: nothing has been sent, paid or asked since they ended.
func (w *world) stays(t testing.TB) {
	t.Helper()
	for _, s := range w.ended {
		if got := s.look(t); got != s.want.end {
			t.Errorf("%s: ended as %s, and later it is %s", s.name, s.want.end, got)
		}
	}
}
