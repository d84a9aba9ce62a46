package windowtest

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/facilitator"
)

// A mood is what the facilitator does with whatever it is asked.
type mood int

const (
	_       mood = iota
	answers      // it says what it supports, and settles
	hangs        // it takes every question and answers none; what it is shown is swallowed
	fails        // it answers 503 to everything
	refuses      // it says that it settles on no network: a definite no. (What it answers with 401 is an outage of a source, which is asked once an hour.)
)

// settleTime bounds a settlement that the facilitator makes.
const settleTime = 30 * time.Second

// A shown is an authorization of a caller when the facilitator sees it for the first time. What is shown again can pay no second time.
type shown struct {
	at      time.Time
	replica string
	nonce   common.Hash
	units   uint64
}

// An authority is a facilitator that every replica knows under an address of its own, so that it can tell who asks.
type authority struct {
	*httptest.Server
	t        testing.TB
	treasury common.Address
	engine   *facilitator.Engine

	mu    sync.Mutex
	mood  mood
	deaf  map[string]bool      // replicas that it answers nothing, while it answers others
	over  chan struct{}        // closed when the mood changes
	asked int                  // questions what it supports
	held  map[int]string       // those that nobody has answered yet, by their number, with who asks
	first map[string]time.Time // when the first question came that it answered well, by replica
	good  map[string]time.Time // and the last one
	seen  map[common.Hash]bool
	all   []shown
	// Since when what a settlement needs, and what a refund needs, is known to work, by what it answered last; a proof counts from when its question came.
	settles, refunds time.Time
	most             uint64 // units that it was shown since the last proof of both
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t, mood: answers, deaf: map[string]bool{}, over: make(chan struct{}), held: map[int]string{}, first: map[string]time.Time{}, good: map[string]time.Time{},
		seen: map[common.Hash]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{replica}/supported", a.supported)
	mux.HandleFunc("POST /{replica}/settle", a.settle)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(func() { a.becomes(answers); a.Close() })
	return a
}

// becomes changes what it does, also with what it has not answered yet, and returns when that began.
func (a *authority) becomes(m mood, deaf ...string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mood, a.deaf = m, map[string]bool{}
	for _, replica := range deaf {
		a.deaf[replica] = true
	}
	close(a.over)
	a.over = make(chan struct{})
	return time.Now()
}

// to is what it does with a question of a replica. The lock is held.
func (a *authority) to(replica string) mood {
	if a.mood == answers && a.deaf[replica] {
		return hangs
	}
	return a.mood
}

func (a *authority) supported(w http.ResponseWriter, r *http.Request) {
	came, replica := time.Now(), r.PathValue("replica")
	a.mu.Lock()
	a.asked++
	id := a.asked
	for {
		m, over := a.to(replica), a.over
		if m != hangs {
			break
		}
		a.held[id] = replica
		a.mu.Unlock()
		select {
		case <-over:
		case <-r.Context().Done():
		}
		a.mu.Lock()
		delete(a.held, id)
		if r.Context().Err() != nil {
			break
		}
	}
	m := a.to(replica)
	if m == answers && r.Context().Err() == nil {
		if _, before := a.first[replica]; !before {
			a.first[replica] = came
		}
		if came.After(a.good[replica]) {
			a.good[replica] = came
		}
		a.proved(came, came)
	}
	a.mu.Unlock()
	switch m {
	case answers:
		_, _ = io.WriteString(w, apptest.SupportsUs)
	case refuses:
		_, _ = io.WriteString(w, `{"kinds":[],"extensions":[],"signers":{}}`)
	case fails, hangs:
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}
}

// proved notes what is known to work; what is older than what was known before changes nothing. The lock is held.
func (a *authority) proved(settles, refunds time.Time) {
	if settles.After(a.settles) {
		a.settles = settles
	}
	if refunds.After(a.refunds) {
		a.refunds = refunds
	}
}

// since is when both were last known to work. The lock is held.
func (a *authority) since() time.Time {
	if a.refunds.Before(a.settles) {
		return a.refunds
	}
	return a.settles
}

func (a *authority) settle(w http.ResponseWriter, r *http.Request) {
	came, replica := time.Now(), r.PathValue("replica")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // whoever asked was killed while it did
	}
	signed := apptest.ReadSigned(a.t, bytes.NewReader(body))
	refund := signed.From == a.treasury
	a.mu.Lock()
	if !refund && !a.seen[signed.Nonce] {
		a.seen[signed.Nonce] = true
		a.all = append(a.all, shown{came, replica, signed.Nonce, signed.Value.Big().Uint64()})
		a.most = max(a.most, a.exposure())
	}
	m := a.to(replica)
	a.mu.Unlock()
	if m != answers {
		http.Error(w, "lost", http.StatusBadGateway)
		return
	}
	// It settles what it was shown, whether or not whoever asked lives to hear of it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), settleTime)
	defer cancel()
	got := a.engine.Settle(ctx, signed)
	paid := got.Status == chain.StatusSettled
	a.mu.Lock()
	switch {
	case paid && refund:
		a.proved(time.Time{}, came)
	case paid:
		a.proved(came, time.Time{})
	}
	a.mu.Unlock()
	apptest.Settling{W: w, Signed: signed}.Say(paid, got.Why, got.Transaction)
}

// exposure is what it was shown since the last proof, in units. The lock is held.
func (a *authority) exposure() (units uint64) {
	since := a.since()
	for n := len(a.all) - 1; n >= 0 && a.all[n].at.After(since); n-- {
		units += a.all[n].units
	}
	return units
}

// A sight is what it has seen until now.
type sight struct {
	first map[string]time.Time // when the first question came that it answered well, by replica
	good  map[string]time.Time // and the last one
	since time.Time            // the last of those, of anybody
	all   []shown
	most  uint64
	asked int
}

func (a *authority) sight() sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	return sight{maps.Clone(a.first), maps.Clone(a.good), a.since(), append([]shown(nil), a.all...), a.most, a.asked}
}

// holds are the questions that it keeps from a replica now.
func (a *authority) holds(replica string) map[int]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := map[int]bool{}
	for id, who := range a.held {
		if who == replica {
			ids[id] = true
		}
	}
	return ids
}

// units are what a replica has shown since, in units.
func (s sight) units(replica string, since time.Time) (units uint64) {
	for _, one := range s.all {
		if one.replica == replica && one.at.After(since) {
			units += one.units
		}
	}
	return units
}
