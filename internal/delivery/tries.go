package delivery

import (
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

const (
	// TriesWindow is how far back it is counted what was asked for and what came, give or take the minute that is under way.
	TriesWindow = 10 * time.Minute
	triesSlice  = time.Minute
	// triesPayers is how many different payers are remembered of a minute: whether there was more than one is all that is asked.
	triesPayers = 2
)

// Tries are what this process asked callers for, and what came of it, in the last ten minutes. They are a count in memory: a challenge writes no row.
type Tries struct {
	Challenges int              `json:"challenges"` // requests that were asked to pay
	Settled    int              `json:"settled"`    // payments
	Failed     int              `json:"failed"`     // payments that should have settled and did not; none whose payer is at fault
	Payers     []common.Address `json:"payers"`     // of Failed, two at most
}

// Add is both together.
func (t Tries) Add(u Tries) Tries {
	return Tries{Challenges: t.Challenges + u.Challenges, Settled: t.Settled + u.Settled, Failed: t.Failed + u.Failed, Payers: someOf(t.Payers, u.Payers...)}
}

func someOf(payers []common.Address, more ...common.Address) []common.Address {
	some := slices.Clone(payers)
	for _, p := range more {
		if len(some) < triesPayers && !slices.Contains(some, p) {
			some = append(some, p)
		}
	}
	return some
}

// tries keeps them, a sum for each minute.
type tries struct {
	mu     sync.Mutex
	slices [TriesWindow/triesSlice + 1]struct {
		minute int64
		sum    Tries
	}
}

func (t *tries) add(now time.Time, one Tries) {
	t.mu.Lock()
	defer t.mu.Unlock()
	minute := now.Unix() / int64(triesSlice/time.Second)
	s := &t.slices[minute%int64(len(t.slices))]
	if s.minute != minute {
		s.minute, s.sum = minute, Tries{}
	}
	s.sum = s.sum.Add(one)
}

func (t *tries) of(now time.Time) (sum Tries) {
	t.mu.Lock()
	defer t.mu.Unlock()
	minute := now.Unix() / int64(triesSlice/time.Second)
	for _, s := range t.slices {
		if minute-s.minute < int64(len(t.slices)) {
			sum = sum.Add(s.sum)
		}
	}
	return sum
}

// Tries returns what this process asked callers for of late, and what came of it.
func (p *Path) Tries() Tries { return p.tries.of(p.Now()) }

// askedToPay counts a request that was asked to pay.
func (p *Path) askedToPay() { p.tries.add(p.Now(), Tries{Challenges: 1}) }

// tried counts what became of a payment that was to settle: on word says that a facilitator's word of it was believed. What the payer is at fault for
// says nothing about us, and that no facilitator takes work is told by the notice of the one that is out.
func (p *Path) tried(payer common.Address, s chain.Settlement, onWord bool) {
	switch {
	case onWord || s.Status == chain.StatusSettled:
		p.tries.add(p.Now(), Tries{Settled: 1})
	case !s.PayerFault && !limited(s.Err):
		p.tries.add(p.Now(), Tries{Failed: 1, Payers: []common.Address{payer}})
	}
}
