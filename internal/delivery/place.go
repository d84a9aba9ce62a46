package delivery

import (
	"context"
	"sync/atomic"
	"time"

	"market/internal/call"
	"market/internal/capacity"
	"market/internal/refusal"
)

// streamsRetry is when to come again while this process has as many streams as it can.
const streamsRetry = time.Second

// streams counts those that this process has or is about to have: each takes memory for as long as its caller likes.
type streams struct{ now atomic.Int64 }

func (s *streams) full(most int) bool { return s.now.Load() >= int64(most) }

// take is one more, unless there are as many as there may be.
func (s *streams) take(most int) bool {
	if s.now.Add(1) <= int64(most) {
		return true
	}
	s.now.Add(-1)
	return false
}

// A place is a call's place at its service, and of a stream its place here. It is not taken at first.
type place struct {
	at      *capacity.Place
	streams *streams // nil: it is none
	most    int
	taken   bool // of streams
}

func (p *Path) place(r Request) *place {
	made := &place{at: p.gate.Place(r.Target.Service.ID, r.Target.Service.Capacity)}
	if r.Target.Endpoint.Stream {
		made.streams, made.most = &p.streams, p.Streams.orDefault().AtOnce
	}
	return made
}

// stream takes the place here.
func (p *place) stream() bool {
	if p.streams != nil && !p.taken {
		p.taken = p.streams.take(p.most)
		return p.taken
	}
	return true
}

// await takes the place as soon as there is room at the service, and gives up after placeTime, or when ctx ends.
func (p *place) await(ctx context.Context) bool {
	if !p.stream() {
		return false
	}
	if !p.at.Await(ctx, placeTime) {
		p.leave()
		return false
	}
	return true
}

// leave gives the place back. It may be called again, and where nothing was taken.
func (p *place) leave() {
	p.at.Leave()
	if p.taken {
		p.taken = false
		p.streams.now.Add(-1)
	}
}

// full refuses where the service has no room for one more call now, or we have none for one more stream. It takes nothing: a hint, which costs less
// than what comes after it.
func (p *Path) full(r Request) *refusal.Error {
	if r.Target.Endpoint.Stream && p.streams.full(p.Streams.orDefault().AtOnce) {
		return p.manyStreams()
	}
	wait, free := p.gate.Look(r.Target.Service.ID, r.Target.Service.Capacity)
	if free {
		return nil
	}
	return p.overCapacity(wait)
}

// enter takes the place, or refuses.
func (p *Path) enter(place *place) *refusal.Error {
	if !place.stream() {
		return p.manyStreams()
	}
	wait, taken := place.at.Take()
	if taken {
		return nil
	}
	place.leave()
	return p.overCapacity(wait)
}

func (p *Path) overCapacity(wait time.Duration) *refusal.Error {
	return refusal.New(call.OverCapacity, "the service has as many calls as its provider says it can take").WithUntil(p.Now().Add(wait))
}

func (p *Path) manyStreams() *refusal.Error {
	return refusal.New(call.OverCapacity, "as many streams are under way here as we can carry").WithUntil(p.Now().Add(streamsRetry))
}
