package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"market/internal/call"
	"market/internal/catalog"
)

const (
	probeTimeout = 3 * time.Second
	backOffMax   = time.Minute
	troubleTTL   = time.Second
	verdictLife  = time.Hour // after which a verdict is forgotten; well past any TTL
	sweepEvery   = time.Minute
)

// ErrClosed is an answer that a closed Prober can't give.
var ErrClosed = errors.New("upstream: prober is closed")

// A Verdict is what a liveness probe found.
type Verdict struct {
	Live   bool
	At     time.Time   // when the probe ended, in this process's time
	Reason call.Reason // why not; empty for a live service. EgressDown and LocalError say that the trouble is ours
	Why    string      // the same for people; public
}

// isTrouble says whether a reason tells about us and nothing about the service.
func isTrouble(r call.Reason) bool { return r == call.EgressDown || r == call.LocalError }

// holds is for how long a verdict counts. One that only says that we could not look counts so briefly that it spares us a storm of probes and
// keeps nobody from a service that lives.
func (v Verdict) holds(ttl time.Duration) time.Duration {
	if isTrouble(v.Reason) {
		return min(ttl, troubleTTL)
	}
	return ttl
}

// A Prober asks services whether they live, remembers each verdict for its TTL, and asks on its own while people want a service that
// does not live. Its verdicts are hints of one process: they can be lost.
type Prober struct {
	look   func(context.Context, *catalog.Service) cause
	ttl    time.Duration
	now    func() time.Time
	jitter func(time.Duration) time.Duration

	base    context.Context
	stop    context.CancelFunc
	flights singleflight.Group

	mu       sync.Mutex
	closed   bool
	running  sync.WaitGroup // added to with mu held and closed false
	verdicts map[uuid.UUID]Verdict
	swept    time.Time          // when verdicts were last forgotten // by Service.ProbeID
	wanted   map[uuid.UUID]want // services with a background prober
}

// A want is the last request for a service that does not live, with the listing as it was then: a corrected probe counts at once.
type want struct {
	at      time.Time
	service *catalog.Service
}

// NewProber returns a prober that sends its probes with c. ttl is how long a verdict on a service holds, good or bad.
func NewProber(c *Client, ttl time.Duration, now func() time.Time) *Prober {
	return newProber(c.look, ttl, now)
}

func newProber(look func(context.Context, *catalog.Service) cause, ttl time.Duration, now func() time.Time) *Prober {
	base, stop := context.WithCancel(context.Background())
	return &Prober{
		look: look, ttl: ttl, now: now, jitter: later, base: base, stop: stop,
		verdicts: map[uuid.UUID]Verdict{}, wanted: map[uuid.UUID]want{},
	}
}

// later lengthens a wait by up to a quarter, so that many services that died together are not probed together. Never shorter: a probe
// before the TTL is over would only find the old verdict.
func later(d time.Duration) time.Duration {
	return d + rand.N(d/4+1) //nolint:gosec // no secret depends on it
}

// TTL is how long a verdict holds.
func (p *Prober) TTL() time.Duration { return p.ttl }

// Holds is for how long a verdict counts.
func (p *Prober) Holds(v Verdict) time.Duration { return v.holds(p.ttl) }

// Last returns the verdict on a service, as it is listed, if there is one that still counts. It never waits. Trouble of ours lasts until we looked
// again: in between nobody is asked to pay for what could not be reached a moment ago.
func (p *Prober) Last(s *catalog.Service) (Verdict, bool) {
	return p.last(s, func(v Verdict) time.Duration {
		if isTrouble(v.Reason) {
			return 5*v.holds(p.ttl)/4 + probeTimeout
		}
		return v.holds(p.ttl)
	})
}

func (p *Prober) last(s *catalog.Service, counts func(Verdict) time.Duration) (Verdict, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.verdicts[s.ProbeID()]
	if !ok || p.now().Sub(v.At) >= counts(v) {
		return Verdict{}, false
	}
	return v, true
}

// Live returns a verdict that still counts, and probes if there is none. However many ask at once, there is one probe of a service
// at a time; it has its own deadline and goes on when those who wait for it leave. The error is that of ctx, or ErrClosed.
func (p *Prober) Live(ctx context.Context, s *catalog.Service) (Verdict, error) {
	if v, ok := p.last(s, p.Holds); ok {
		return v, nil
	}
	select {
	case r := <-p.flights.DoChan(s.ProbeID().String(), func() (any, error) { return p.probe(s) }):
		v, _ := r.Val.(Verdict)
		return v, r.Err
	case <-ctx.Done():
		return Verdict{}, ctx.Err()
	}
}

// probe runs in a flight of its own.
func (p *Prober) probe(s *catalog.Service) (Verdict, error) {
	// A flight may have landed between the look at the verdicts and this one.
	if v, ok := p.last(s, p.Holds); ok {
		return v, nil
	}
	if !p.begin() {
		return Verdict{}, ErrClosed
	}
	defer p.running.Done()
	ctx, cancel := context.WithTimeout(p.base, probeTimeout)
	defer cancel()
	found := p.look(ctx, s)

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return Verdict{}, ErrClosed // stopped half way: no evidence
	}
	v := Verdict{Live: found.reason == "", At: p.now(), Reason: found.reason, Why: found.detail}
	p.sweep(v.At)
	p.verdicts[s.ProbeID()] = v
	return v, nil
}

// sweep forgets verdicts that nobody can use, now and then: a probe is not to look at every service's. p.mu is held.
func (p *Prober) sweep(now time.Time) {
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	for id, old := range p.verdicts {
		if now.Sub(old.At) > verdictLife {
			delete(p.verdicts, id)
		}
	}
}

// Wanted says that somebody asked for a service that does not live. While that goes on, one goroutine for the service probes it again,
// first after the TTL, then at intervals that double up to a minute. It ends when the service lives, or when nobody has asked for two
// intervals.
func (p *Prober) Wanted(s *catalog.Service) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	_, watched := p.wanted[s.ID]
	p.wanted[s.ID] = want{p.now(), s}
	if !watched {
		first := p.ttl
		if v, known := p.verdicts[s.ProbeID()]; known {
			first = p.Holds(v)
		}
		p.running.Go(func() { p.watch(s.ID, first) })
	}
}

func (p *Prober) watch(serviceID uuid.UUID, wait time.Duration) {
	interval := p.ttl
	for {
		timer := time.NewTimer(p.jitter(wait))
		select {
		case <-timer.C:
		case <-p.base.Done():
			timer.Stop()
			return
		}
		s := p.stillWanted(serviceID, 2*interval)
		if s == nil {
			return
		}
		v, err := p.Live(p.base, s)
		if err != nil {
			return // closed
		}
		if v.Live {
			p.stillWanted(serviceID, 0)
			return
		}
		if wait = p.Holds(v); !isTrouble(v.Reason) { // a service that was not asked has given no reason to be asked less often
			interval = min(2*interval, max(backOffMax, p.ttl))
			wait = interval
		}
	}
}

// stillWanted returns a service that somebody asked for within so long, and ends the watch over any other. Check and end are one step:
// whoever asks later starts a new watch.
func (p *Prober) stillWanted(serviceID uuid.UUID, within time.Duration) *catalog.Service {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.wanted[serviceID]
	if p.now().Sub(w.at) < within {
		return w.service
	}
	delete(p.wanted, serviceID)
	return nil
}

func (p *Prober) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Add(1)
	return true
}

// Close stops every probe and waits until all have ended, or until ctx does.
func (p *Prober) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	done := make(chan struct{})
	go func() { p.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
