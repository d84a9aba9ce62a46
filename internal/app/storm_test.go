package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/chain"
	"market/internal/payment"
)

// A storm is a marketplace of two replicas in bad weather. Its plan follows from its seed.
type storm struct {
	*apptest.World
	seed    uint64
	service *apptest.Service
	terms   payment.Required
	payers  []chain.Key
	honest  atomic.Bool // the weather is over
	sent    sync.Map    // nonces of authorizations that a facilitator has seen

	mu       sync.Mutex
	replicas [2]*apptest.World
	heard    map[string]*heard // by call id
	did      map[string]int    // what the weather did, for the report
}

// A heard is what callers and the service have seen of one call.
type heard struct {
	served, mustSign bool
	asked            int
}

func (s *storm) note(id string, write func(*heard)) {
	if id == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, known := s.heard[id]
	if !known {
		h = &heard{}
		s.heard[id] = h
	}
	write(h)
}

func (s *storm) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did[what]++
}

func (s *storm) replica(i int) *apptest.World {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replicas[i]
}

// The kinds of work, by the number in the body.
const (
	workGood = iota + 1
	workSlow
	workRefuse
	workBreak
	workHangUp
	workEnd
)

// work is the service. What it does follows from what it is asked.
func (s *storm) work(w http.ResponseWriter, r *http.Request) {
	s.note(r.Header.Get("Market-Call"), func(h *heard) { h.asked++ })
	var in struct{ N int }
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<10)).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch in.N {
	case workSlow:
		timer := time.NewTimer(300 * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	case workRefuse:
		http.Error(w, "no", http.StatusUnprocessableEntity)
		return
	case workBreak:
		apptest.Fails(w, r)
		return
	case workHangUp:
		panic(http.ErrAbortHandler)
	}
	apptest.Works(w, r)
}

// kindOf chooses the work of a call: seven of ten are good.
func kindOf(dice *rand.Rand) int {
	if dice.IntN(10) < 7 {
		return workGood
	}
	return workSlow + dice.IntN(workEnd-workSlow)
}

// A hearing is what a caller makes of an answer.
type hearing int

const (
	_       hearing = iota
	undone          // nothing is decided: the same payment is to be sent again
	decided         // it is
	shut            // nobody took the payment: the door is closed for a while
)

// call makes one call as a client does: it sends one payment, and the same one again while it is told that nothing is decided.
func (s *storm) call(t *testing.T, i uint64) {
	dice := rand.New(rand.NewPCG(s.seed, i)) //nolint:gosec // a test's dice
	header := s.SignFor(t, s.payers[dice.IntN(len(s.payers))], s.terms, chaosLife)
	ask := apptest.Ask(s.service.URL).With(fmt.Sprintf(`{"n":%d}`, kindOf(dice)))
	for tries := 1 + dice.IntN(6); tries > 0; {
		patience := time.Minute
		if dice.IntN(10) == 0 {
			patience = time.Duration(1+dice.IntN(60)) * time.Millisecond
		}
		switch s.send(t, ask, header, dice.IntN(2), patience) {
		case shut:
			wait(t, time.Second)
			continue
		case decided:
			if dice.IntN(10) > 0 {
				return
			}
		}
		tries--
		wait(t, time.Duration(20+dice.IntN(400))*time.Millisecond)
	}
}

// send sends once to one replica, and notes what comes back. A caller whose patience ends, or whose replica dies, hears nothing.
func (s *storm) send(t *testing.T, ask apptest.Asking, header string, replica int, patience time.Duration) hearing {
	ctx, leave := context.WithTimeout(t.Context(), patience)
	defer leave()
	ask = s.replica(replica).At(t, ask)
	r, err := http.NewRequestWithContext(ctx, ask.Method, ask.URL, strings.NewReader(ask.Body))
	if err != nil {
		t.Error(err)
		return decided
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(payment.HeaderSignature, header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.count("answers that nobody heard")
		return undone
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return undone
	}
	id := response.Header.Get("Market-Call")
	var problem struct {
		Code    string
		Charged any
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		t.Errorf("%d: %s", response.StatusCode, body)
	}
	s.count(strings.TrimSpace(fmt.Sprintf("answers %d %s", response.StatusCode, problem.Code)))
	switch response.StatusCode {
	case http.StatusOK:
		s.note(id, func(h *heard) { h.served = true })
		return decided
	case http.StatusPaymentRequired:
		s.note(id, func(h *heard) { h.mustSign = true })
		return decided
	}
	s.note(id, func(*heard) {})
	switch {
	case problem.Code == string(call.NotReady):
		return shut
	case problem.Charged == false && response.Header.Get("Retry-After") == "":
		return decided
	}
	return undone
}

// rage makes the weather until it is over, and looks at the books all the time.
func (s *storm) rage(t *testing.T, over <-chan struct{}) {
	dice := rand.New(rand.NewPCG(s.seed, ^uint64(0))) //nolint:gosec // a test's dice
	for {
		select {
		case <-over:
			return
		default:
		}
		s.promise(t)
		switch n := dice.IntN(100); {
		case n < 20:
			s.count("pauses of the chain")
			s.Chain.Pause()
			wait(t, time.Duration(200+dice.IntN(1000))*time.Millisecond)
			s.Chain.Resume()
		case n < 30:
			s.count("reorganisations")
			s.reorganise(t)
		case n < 40:
			s.count("jumps of time past every lease")
			s.Shift(t, time.Duration(40+dice.IntN(30))*time.Second)
		case n < 48:
			s.count("replicas killed")
			s.kill(t, dice.IntN(2))
		}
		wait(t, time.Duration(200+dice.IntN(800))*time.Millisecond)
	}
}

// reorganise takes the newest block back: deeper than a call is served at, and not as deep as a refund waits for.
func (s *storm) reorganise(t *testing.T) {
	head, err := s.Chain.Head(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	if err := s.Chain.Reorg(t.Context(), head.Number.Uint64()); err != nil {
		t.Error(err)
	}
}

// kill ends one replica as a crash does, and starts another one in its place. Meanwhile callers are sent to the one that is left.
func (s *storm) kill(t *testing.T, i int) {
	dies := s.replica(i)
	s.put(i, s.replica(1-i))
	dies.App.Kill()
	s.put(i, s.Replica(t))
}

func (s *storm) put(i int, replica *apptest.World) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas[i] = replica
}

// wait lets time pass.
func wait(t *testing.T, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
