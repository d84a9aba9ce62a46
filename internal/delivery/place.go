package delivery

import (
	"time"

	"market/internal/call"
	"market/internal/capacity"
	"market/internal/refusal"
)

// place is a call's place at its service, not taken yet.
func (p *Path) place(r Request) *capacity.Place {
	return p.gate.Place(r.Target.Service.ID, r.Target.Service.Capacity)
}

// full refuses where the service has no room for one more call now. It takes nothing: a hint, which costs less than what comes after it.
func (p *Path) full(r Request) *refusal.Error {
	wait, free := p.gate.Look(r.Target.Service.ID, r.Target.Service.Capacity)
	if free {
		return nil
	}
	return p.overCapacity(wait)
}

// enter takes the place, or refuses.
func (p *Path) enter(place *capacity.Place) *refusal.Error {
	wait, taken := place.Take()
	if taken {
		return nil
	}
	return p.overCapacity(wait)
}

func (p *Path) overCapacity(wait time.Duration) *refusal.Error {
	return refusal.New(call.OverCapacity, "the service has as many calls as its provider says it can take").WithUntil(p.Now().Add(wait))
}
