package capacity

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// again is when to try again where a place has to become free, or lies on another replica.
	again = time.Second
	// lookEvery is how often Await looks for a place.
	lookEvery = 50 * time.Millisecond
	// turnMax is how long a call that was let in waits at most for its turn: it is paid.
	turnMax = 4 * time.Second
)

// A Gate lets calls in to services, on one replica.
type Gate struct {
	self uuid.UUID
	now  func() time.Time

	mu       sync.Mutex
	fleet    fleet
	services map[uuid.UUID]*service
	limited  int // places that are taken at services with a limit
}

// A service is what is under way at one service on this replica.
type service struct {
	taken  int
	bucket bucket
	next   time.Time     // when the next call may go to the service, so that they go at an even pace
	queue  time.Duration // what those take that were let in and had no turn yet, at their pace
}

// longest is how long one more call would wait for its turn if all that were let in before came right before it.
func (s *service) longest(now time.Time) time.Duration { return max(0, s.next.Sub(now)) + s.queue }

// turn returns how long the next call has to wait for its turn.
func (s *service) turn(now time.Time, pace time.Duration) time.Duration {
	at := s.next
	if at.Before(now) {
		at = now
	}
	s.next = at.Add(pace)
	s.queue -= pace
	return at.Sub(now)
}

// NewGate returns the gate of the replica self, which is dead to the others aliveFor after its last heartbeat. It shares nothing out before the
// first call of Alive. now has to be a clock that never jumps (time.Now).
func NewGate(self uuid.UUID, aliveFor time.Duration, now func() time.Time) *Gate {
	return &Gate{self: self, now: now, fleet: fleet{aliveFor: aliveFor}, services: map[uuid.UUID]*service{}}
}

// Alive tells who is alive, read after a heartbeat that was sent at a moment of the gate's clock.
func (g *Gate) Alive(sent time.Time, members []uuid.UUID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.fleet = g.fleet.next(g.self, members, sent, now)
	// What is idle is forgotten, so that services which left the shelf do not gather here.
	for id, s := range g.services {
		if s.taken == 0 && !s.bucket.due.After(now) && !s.next.After(now) {
			delete(g.services, id)
		}
	}
}

// Retire gives up this replica's shares for good, as soon as no call has a part of them; it says whether that was so.
func (g *Gate) Retire() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limited > 0 {
		return false
	}
	g.fleet = fleet{aliveFor: g.fleet.aliveFor}
	return true
}

// Now reads the gate's clock.
func (g *Gate) Now() time.Time { return g.now() }

// Look says whether a service has room for one more call here, and takes nothing: a hint. Where it has none, wait is when to try again.
func (g *Gate) Look(id uuid.UUID, l Limit) (wait time.Duration, free bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.look(id, l, g.now())
}

// look is Look for whoever has the lock.
func (g *Gate) look(id uuid.UUID, l Limit, now time.Time) (wait time.Duration, free bool) {
	if l == (Limit{}) {
		return 0, true
	}
	if !g.fleet.sharing(g.self, now) {
		return again, false
	}
	s := g.services[id]
	if s == nil {
		s = &service{}
	}
	if l.Places > 0 && s.taken >= placesOf(l.Places, id, g.self, g.fleet.members) {
		return again, false
	}
	if l.Rate > 0 {
		pace := l.Rate.pace(len(g.fleet.members))
		s.bucket.settle(now, pace)
		if wait = s.bucket.wait(now, pace); wait == 0 && s.longest(now) > turnMax {
			wait = again
		}
	}
	return wait, wait == 0
}

// A Place is one call's place at a service: taken before anything is paid, given back when the service was asked or will not be. It belongs
// to the goroutine that walks the call.
type Place struct {
	gate    *Gate
	service uuid.UUID
	limit   Limit
	taken   bool
	spent   bool
	pace    time.Duration // at which it was let in; zero: no rate was declared
}

// Place returns a place that is not taken yet.
func (g *Gate) Place(id uuid.UUID, l Limit) *Place { return &Place{gate: g, service: id, limit: l} }

// Take takes the place. Where the service has no room, wait is when to try again.
func (p *Place) Take() (wait time.Duration, taken bool) {
	if p.taken {
		return 0, true
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if wait, free := g.look(p.service, p.limit, now); !free {
		return wait, false
	}
	s := g.services[p.service]
	if s == nil {
		s = &service{}
		g.services[p.service] = s
	}
	s.taken++
	p.taken = true
	if p.limit != (Limit{}) {
		g.limited++
	}
	if p.limit.Rate > 0 {
		p.pace = p.limit.Rate.pace(len(g.fleet.members))
		s.bucket.take(now, p.pace)
		s.queue += p.pace
	}
	return 0, true
}

// Await takes the place as soon as there is room, and gives up after a while, or when ctx ends.
func (p *Place) Await(ctx context.Context, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if _, taken := p.Take(); taken {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// Turn says that the service is asked when it returns: its provider counts the call, so the rate does, too. Calls that were let in one after another
// come here together where one block settled their payments, and a provider that counts would turn half of them away; so they go one at a time, at the
// pace of the rate. Nobody is let in who could have to wait longer than turnMax.
func (p *Place) Turn() {
	if p.spent = true; !p.taken || p.pace == 0 {
		return
	}
	g := p.gate
	g.mu.Lock()
	wait := g.services[p.service].turn(g.now(), p.pace)
	g.mu.Unlock()
	if wait > 0 {
		<-time.After(wait)
	}
}

// Leave gives the place back, and the call to the rate where the service was not asked. It may be called again, and where nothing was taken.
func (p *Place) Leave() {
	if !p.taken {
		return
	}
	p.taken = false
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.services[p.service]
	s.taken--
	if p.limit != (Limit{}) {
		g.limited--
	}
	if p.pace > 0 && !p.spent {
		s.bucket.giveBack(p.pace)
		s.queue -= p.pace
	}
	p.pace = 0
}
